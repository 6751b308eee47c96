/**
 * CRC-32C (Castagnoli, RFC 3720), the checksum of LevelDB's files; Node's zlib.crc32 uses another polynomial. The
 * implementation is slicing-by-8: it processes 8 bytes per step, with one table for each position of a byte.
 */
const polynomial = 0x82f63b78
const slices = 8
const maskDelta = 0xa282ead8

const tables = makeTables()

function makeTables(): Int32Array[] {
  const made = Array.from({ length: slices }, () => new Int32Array(256))
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >>> 1 ^ polynomial : crc >>> 1
    made[0]![byte] = crc
  }
  for (let slice = 1; slice < slices; slice++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = made[slice - 1]![byte]!
      made[slice]![byte] = before >>> 8 ^ made[0]![before & 0xff]!
    }
  }
  return made
}

/**
 * @param from index of the first byte
 * @param to index after the last byte
 * @returns an unsigned 32-bit integer
 */
export function crc32c(bytes: Uint8Array, from = 0, to = bytes.length): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] =
    tables as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]
  let crc = -1
  let at = from
  for (const end = to - slices; at <= end; at += slices) {
    const low = crc ^ (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24)
    crc = t7[low & 0xff]! ^ t6[low >>> 8 & 0xff]! ^ t5[low >>> 16 & 0xff]! ^ t4[low >>> 24]! ^
      t3[bytes[at + 4]!]! ^ t2[bytes[at + 5]!]! ^ t1[bytes[at + 6]!]! ^ t0[bytes[at + 7]!]!
  }
  for (; at < to; at++) crc = crc >>> 8 ^ t0[(crc ^ bytes[at]!) & 0xff]!
  return ~crc >>> 0
}

/** Masks a checksum as LevelDB stores it, because a checksum over bytes that contain checksums would be weak. */
export function maskCrc(crc: number): number {
  return ((crc >>> 15 | crc << 17) + maskDelta) >>> 0
}
