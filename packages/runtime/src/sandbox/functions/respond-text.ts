import type { RespondArguments } from '../sandbox.ts'

/** The first line of the text of a call of a show or list function, as JSON. */
export interface RespondCall {
  readonly argumentList: readonly unknown[]
  /** Whether the function is a list function, which gets rows. */
  readonly isList: boolean
  readonly rowsLeft?: unknown
}

/** Returns what a show or list function receives, as lines of JSON: a `RespondCall`, and then the rows. */
export function respondText({ argumentList, rows, rowsLeft }: RespondArguments): string {
  const left = rowsLeft === undefined ? '' : `,"rowsLeft":${rowsLeft}`
  const first = `{"argumentList":${argumentList},"isList":${rows !== undefined}${left}}`
  return [first, ...rows ?? [], ''].join('\n')
}
