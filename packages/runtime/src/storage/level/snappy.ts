/**
 * Decompresses a block that LevelDB has compressed with Snappy (format_description.txt of github.com/google/snappy).
 * @throws RangeError when the bytes are not such a block
 */
export function unsnappy(packed: Buffer): Buffer {
  const input = { at: 0 }
  const length = readVarint(packed, input)
  const unpacked = Buffer.alloc(length)
  let to = 0
  while (input.at < packed.length) {
    const tag = packed.readUInt8(input.at++)
    const kind = tag & 3
    if (kind === 0) {
      const size = literalLength(packed, input, tag >> 2)
      if (input.at + size > packed.length || to + size > length) throw new RangeError('a literal is too long')
      packed.copy(unpacked, to, input.at, input.at += size)
      to += size
      continue
    }
    const size = kind === 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1
    const width = kind === 3 ? 4 : 2
    const offset = kind === 1
      ? tag >> 5 << 8 | packed.readUInt8(input.at++)
      : packed.readUIntLE((input.at += width) - width, width)
    if (offset === 0 || offset > to || to + size > length) throw new RangeError('a copy reaches out of the block')
    // Copy byte by byte, because a copy may overlap the bytes that it writes.
    for (const end = to + size; to < end; to++) unpacked[to] = unpacked[to - offset]!
  }
  if (to !== length) throw new RangeError('the block is too short')
  return unpacked
}

/** @param code below 60: the length minus one; from 60 on: 59 plus the number of bytes that hold the length */
function literalLength(packed: Buffer, input: { at: number }, code: number): number {
  if (code < 60) return code + 1
  const width = code - 59
  return packed.readUIntLE((input.at += width) - width, width) + 1
}

/** @throws RangeError when the bytes end within the number */
export function readVarint(bytes: Buffer, input: { at: number }): number {
  let value = 0
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes.readUInt8(input.at++)
    value += (byte & 0x7f) * factor
    if (byte < 0x80) return value
  }
}
