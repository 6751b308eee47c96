/** Parses and checks the flags of a command line. */
import { parseArgs } from 'node:util'

/** Thrown when the command line is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command cannot start on this machine (for instance, a port is in use). Shown without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

type FlagKinds = Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly multiple?: boolean }>>

/** @throws UsageError for unknown flags, missing values and positional arguments */
export function parseFlags<Kinds extends FlagKinds>(words: readonly string[], options: Kinds) {
  try {
    return parseArgs({ args: [...words], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0]!)
  }
}

/** @throws UsageError unless the text is an integer within the bounds */
export function integerFlag(flag: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (!/^\d{1,9}$/.test(text) || value < min || value > max) {
    throw new UsageError(`--${flag} ${text}: only an integer from ${min} to ${max} is allowed`)
  }
  return value
}
