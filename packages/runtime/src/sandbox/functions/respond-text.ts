import type { RespondArguments } from '../sandbox.ts'

/** The first line of the text of a call of a show or list function, as JSON. */
export interface RespondCall { readonly argumentList: readonly unknown[]; readonly rowsLeft?: unknown }

/** Returns what a show or list function receives, as lines of JSON: a `RespondCall`, and then the rows. */
export function respondText({ argumentList, rows = [], rowsLeft }: RespondArguments): string {
  const left = rowsLeft === undefined ? '' : `,"rowsLeft":${rowsLeft}`
  return [`{"argumentList":${argumentList}${left}}`, ...rows, ''].join('\n')
}
