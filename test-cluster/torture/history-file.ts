/** Recorded histories as JSON files, so that one can be judged again. */
import { readFileSync, writeFileSync } from 'node:fs'
import { checkHistory } from '@sectional/simulator/history'
import type { RecordedHistory, Timed } from './recorder.ts'

/** A violation: by a rule of the history checker, or of the run itself. */
export interface TortureFinding {
  readonly rule: string
  readonly text: string
}

/** A rule repeats itself for each later read of the same document. */
const shownMax = 20

/** `Infinity` is stored as null, which only `endMs` can be. */
export function storeHistory(file: string, { finals, ...history }: RecordedHistory): void {
  writeFileSync(file, JSON.stringify({ ...history, ...(finals !== undefined && { finals: [...finals] }) }))
}

/** Reads a file of `storeHistory`. */
export function loadHistory(file: string): RecordedHistory {
  const { finals, edits, reads, localWrites, localReads, ...others } = JSON.parse(readFileSync(file, 'utf8'))
  return {
    ...others, edits: timed(edits), reads: timed(reads), localWrites: timed(localWrites),
    localReads: timed(localReads), ...(finals !== undefined && { finals: new Map(finals) }),
  }
}

/** Judges a file of `storeHistory`, and prints the findings. */
export function judgeFile(file: string, print: (line: string) => void): readonly TortureFinding[] {
  const history = loadHistory(file)
  const findings = checkHistory(history)
  printFindings(findings, print)
  print(`${history.edits.length} edits, ${history.reads.length} reads: ${findings.length} findings`)
  return findings
}

export function printFindings(findings: readonly TortureFinding[], print: (line: string) => void): void {
  for (const { rule, text } of findings.slice(0, shownMax)) print(`FOUND ${rule}: ${text}`)
  if (findings.length > shownMax) print(`and ${findings.length - shownMax} more findings`)
}

function timed<Item extends Timed>(items: readonly Item[]): Item[] {
  return items.map(item => ({ ...item, endMs: item.endMs ?? Infinity }))
}
