import type { ContractionNode } from './contraction-node.ts'
import type { Mapping } from './mapping.ts'
import type { RootTable } from './root-table.ts'

/**
 * Most combining marks after a contraction among which its next mark is looked for. Text in the Stream-Safe Text Format
 * (https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format) has 30 at most. ICU has no limit; without one, a long
 * sequence of marks would take quadratic time.
 */
export const marksMax = 32

/** The longest contraction at a place of a text, and where the text continues after it. */
export interface ContractionMatch { readonly mapping: Mapping; readonly end: number }

/**
 * Finds the longest contraction that starts with the code point at `start`, or the mapping of that code point alone
 * (https://www.unicode.org/reports/tr10/#S2.1).
 *
 * A contraction may be continued by a combining mark that follows other marks, if none of these has the same combining
 * class. Then the marks in between are moved behind it in `text`, where they are the next to be read.
 *
 * @param text code points, of which the first `length` are valid; may be changed from `start` on
 */
export function matchContraction(table: RootTable, text: Int32Array, start: number, length: number): ContractionMatch {
  let matched = table.contractionsFrom(text[start]!)
  let mapping = table.mapping(text[start]!)
  let end = start + 1
  for (let at = end, node = matched.next(text[at]!); at < length && node !== undefined; node = node.next(text[++at]!)) {
    if (node.mapping === 0) continue
    matched = node
    mapping = node.mapping
    end = at + 1
  }
  return matched.hasNext && areMarks(table, text, end, length)
    ? continueBehindMarks(table, text, { mapping, end }, matched, length)
    : { mapping, end }
}

/** Whether two combining marks follow, of which the second one may continue a contraction. */
function areMarks(table: RootTable, text: Int32Array, at: number, length: number): boolean {
  return at + 1 < length && table.combiningClasses(text[at]!) !== 0 && table.combiningClasses(text[at + 1]!) !== 0
}

function continueBehindMarks(
  table: RootTable, text: Int32Array, contiguous: ContractionMatch, matched: ContractionNode, length: number,
): ContractionMatch {
  let node = matched
  let { mapping, end } = contiguous
  const skipped = [text[end]!]
  let skippedAtMatch = 0
  let blocking = table.combiningClasses(text[end]!) & 0xff
  const limit = Math.min(length, end + marksMax)
  for (let at = end + 1; at < limit; at++) {
    const mark = text[at]!
    const classes = table.combiningClasses(mark)
    if (classes === 0) break
    const next = blocking < classes >>> 8 ? node.next(mark) : undefined
    if (next !== undefined && next.mapping !== 0) {
      node = next
      mapping = next.mapping
      end = at + 1
      skippedAtMatch = skipped.length
      if (!node.hasNext) break
    } else {
      skipped.push(mark)
      blocking = classes & 0xff
    }
  }
  for (let i = skippedAtMatch; i > 0; i--) text[--end] = skipped[i - 1]!
  return { mapping, end }
}
