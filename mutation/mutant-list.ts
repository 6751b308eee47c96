/** The list of mutants: each is one small change of production code that makes it wrong. */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Mutant {
  readonly name: string
  /** Path in the repository. */
  readonly file: string
  /** Text that the file has exactly once. */
  readonly before: string
  /** The text that replaces it. */
  readonly after: string
  /** What the nodes do wrong. */
  readonly breaks: string
}

export function readMutants(): readonly Mutant[] {
  return JSON.parse(readFileSync(new URL('mutants.json', import.meta.url), 'utf8')) as readonly Mutant[]
}

/** Returns the text of the mutant's file in this checkout, with the change. Throws if the list is out of date. */
export function mutatedText(checkout: string, { name, file, before, after }: Mutant): string {
  const parts = readFileSync(join(checkout, file), 'utf8').split(before)
  if (parts.length !== 2) {
    throw new Error(`${name}: ${file} has the text to change ${parts.length - 1} times: ${JSON.stringify(before)}`)
  }
  return parts.join(after)
}

/** Writes the change into this checkout. Returns a function that takes it back. */
export function applyMutant(checkout: string, mutant: Mutant): () => void {
  const path = join(checkout, mutant.file)
  const text = mutatedText(checkout, mutant)
  const original = readFileSync(path, 'utf8')
  writeFileSync(path, text)
  return () => writeFileSync(path, original)
}

/** Identifies the change, so that results of an earlier change with the same name are not used. */
export function mutantDigest({ file, before, after }: Mutant): string {
  return createHash('sha256').update(JSON.stringify([file, before, after])).digest('hex').slice(0, 16)
}
