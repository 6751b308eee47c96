/** Writes the row of a view from the bytes that the index stores (`encodeViewRow` in `packages/core`). */
import { asBuffer, viewRowKey } from '@sectional/core'

const firstStart = Buffer.from('{"id":"')
const nextStart = Buffer.from(',\r\n{"id":"')
const keyMember = Buffer.from('","key":')
const valueMember = Buffer.from(',"value":')
/** Longer pieces are copied by one call; a loop takes less time than a call for shorter ones. */
const loopMax = 48

/** Returns how many bytes `writeViewRow` writes at most. A character of the id takes at most six. */
export function viewRowBytesMax(id: string, row: Uint8Array): number {
  return 6 * id.length + row.length + nextStart.length + keyMember.length + valueMember.length + 1
}

/**
 * Writes a row with its id, key and value as JSON.
 *
 * @param at where in the buffer the row begins
 * @param row the emitted key and value
 * @param isFirst whether no row comes before; a separator comes before all others
 * @returns where the row ends
 * @throws RangeError when the bytes are not a row
 */
export function writeViewRow(buffer: Buffer, at: number, id: string, row: Uint8Array, isFirst: boolean): number {
  const key = viewRowKey(row)
  const start = isFirst ? firstStart : nextStart
  let to = copy(buffer, at, start, 0, start.length)
  to = writeJsonText(buffer, to, id)
  to = copy(buffer, to, keyMember, 0, keyMember.length)
  to = copy(buffer, to, row, key.from, key.to)
  to = copy(buffer, to, valueMember, 0, valueMember.length)
  to = copy(buffer, to, row, key.to, row.length)
  buffer[to] = 0x7d
  return to + 1
}

/** Writes a text as it stands between the quotes of a JSON string. */
function writeJsonText(buffer: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x20 || unit >= 0x7f || unit === 0x22 || unit === 0x5c) {
      return at + buffer.write(JSON.stringify(text).slice(1, -1), at)
    }
    buffer[at + i] = unit
  }
  return at + text.length
}

function copy(buffer: Buffer, at: number, from: Uint8Array, start: number, end: number): number {
  if (end - start > loopMax) return at + asBuffer(from).copy(buffer, at, start, end)
  for (let i = start; i < end; i++) buffer[at + i - start] = from[i]!
  return at + end - start
}
