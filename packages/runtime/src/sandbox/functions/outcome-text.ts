/**
 * The outcomes of a call as one text, which `createEnvironment` writes. Each line ends with a line feed, and JSON texts
 * contain none:
 *
 * | line | meaning |
 * |---|---|
 * | a number | the number of rows of this document; two lines follow for each, its key and its value |
 * | a number above `documentRowsMax` | the number of rows, which are left out |
 * | `=` and JSON | the function returned this value |
 * | `!` and JSON | the function threw: a `Thrown` or a `FunctionFailure` |
 * | `#` and JSON | a text that was logged; these lines follow the outcomes |
 */
import { cutText, failureLengthMax } from '../failure-text.ts'
import { documentRowsMax } from '../sandbox.ts'
import type { CallOutcome, EmittedRow, FunctionFailure, MapOutcome, Thrown } from '../sandbox.ts'

export interface ReadOutcomes<Outcome> { readonly outcomes: readonly Outcome[]; readonly logged: readonly string[] }

/** UTF-16 units of a line about a thrown value. `createFailures` writes none of more than 128 Ki. */
const failureLineMax = 130 * 1024
// Escapes of surrogates: pairs, or halves without the other. An even number of backslashes before an escape are escaped
// themselves.
const surrogates = new RegExp([
  '\\\\ud[89ab][0-9a-f]{2}\\\\ud[c-f][0-9a-f]{2}(?<=(?:^|[^\\\\])(?:\\\\\\\\)*.{12})',
  '(\\\\ud[89a-f][0-9a-f]{2})(?<=(?:^|[^\\\\])(?:\\\\\\\\)*.{6})',
].join('|'), 'gi')

/**
 * Returns the text with U+FFFD for each escape of a half of a surrogate pair without the other, which UTF-8 cannot
 * encode. The context of the function cannot do this, because the function may change what `replace` uses.
 */
export function withoutLoneHalves(text: string): string {
  if (!text.includes('\\ud') && !text.includes('\\uD')) return text
  return text.replace(surrogates, (found, half?: string) => half === undefined ? found : '\\ufffd')
}

/** @throws Error when the text has not `count` outcomes of a map function */
export function readMapOutcomes(text: string, count: number): ReadOutcomes<MapOutcome> {
  return readOutcomes(text, count, (line, next) => {
    const rowCount = Number(line)
    if (!Number.isSafeInteger(rowCount)) throw new Error('Outcomes of a map function expected')
    if (rowCount > documentRowsMax) return { kind: 'tooManyRows', count: rowCount }
    const rows: EmittedRow[] = []
    for (let row = 0; row < rowCount; row++) rows.push({ key: next(), value: next() })
    return { kind: 'rows', rows }
  })
}

/** @throws Error when the text has not `count` outcomes of calls */
export function readCallOutcomes(text: string, count: number): ReadOutcomes<CallOutcome> {
  return readOutcomes(text, count, line => {
    if (!line.startsWith('=')) throw new Error('Outcomes of calls expected')
    return { kind: 'value', json: line.slice(1) }
  })
}

const undescribed = 'The function threw a value that cannot be described.'

function readOutcomes<Outcome>(
  text: string, count: number, read: (line: string, next: () => string) => Outcome,
): ReadOutcomes<Outcome | Thrown | FunctionFailure> {
  const lines = text.split('\n')
  let at = 0
  const next = () => {
    // The text behind the last line feed is empty and not a line.
    if (at >= lines.length - 1) throw new Error('The outcomes end too early')
    return lines[at++] as string
  }
  const outcomes: (Outcome | Thrown | FunctionFailure)[] = []
  while (outcomes.length < count) {
    const line = next()
    outcomes.push(line.startsWith('!') ? readThrown(line.slice(1)) : read(line, next))
  }
  return { outcomes, logged: lines.slice(at, -1).map(line => textOf(line.slice(1))) }
}

/** A hostile function can change what `createEnvironment` writes, so that every member is checked and cut. */
function readThrown(json: string): Thrown | FunctionFailure {
  const found = json.length > failureLineMax ? {} : jsonObject(json)
  const { kind, json: thrown, code, message, line, column, module } = found
  // Within the line this text was a string, in which `withoutLoneHalves` could not see its escapes.
  if (kind === 'thrown' && typeof thrown === 'string') return { kind, json: withoutLoneHalves(thrown) }
  return {
    kind: 'error',
    ...(code === 'invalid_require_path' || code === 'compilation_error') && { code },
    message: typeof message === 'string' ? cutText(message, failureLengthMax) : undescribed,
    line: typeof line === 'number' ? line : null,
    column: typeof column === 'number' ? column : null,
    module: typeof module === 'string' ? cutText(module, failureLengthMax) : null,
  }
}

/** Returns the text that the JSON stands for, or the JSON itself when it is no text. */
function textOf(json: string): string {
  return json.startsWith('"') ? JSON.parse(json) as string : json
}

function jsonObject(json: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(json)) as Record<string, unknown>
  } catch {
    return {}
  }
}
