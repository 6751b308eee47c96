import { crc32 } from 'node:zlib'

/** The number of bytes at the start of a record that `sealRecord` fills. */
export const sealBytes = 4

/**
 * Adds a checksum to a record: CRC-32 of the bytes after it (0.2 us for 60 bytes). LevelDB checks its blocks only
 * during compaction, because classic-level does not offer `verify_checksums`. Without a checksum in the record, one
 * flipped bit could be replicated to every node.
 *
 * @param record a record with `sealBytes` free bytes at its start
 */
export function sealRecord(record: Buffer): Buffer {
  record.writeUInt32BE(crc32(record.subarray(sealBytes)), 0)
  return record
}

export function isSealed(record: Uint8Array): boolean {
  if (record.length < sealBytes) return false
  const stored = (record[0]! << 24 | record[1]! << 16 | record[2]! << 8 | record[3]!) >>> 0
  return stored === crc32(record.subarray(sealBytes))
}

/** Returns a sealed copy of the bytes. */
export function sealed(bytes: Uint8Array): Buffer {
  const record = Buffer.allocUnsafe(sealBytes + bytes.length)
  record.set(bytes, sealBytes)
  return sealRecord(record)
}

/** Returns the bytes that were sealed; undefined when they are damaged. */
export function unsealed(record: Uint8Array): Uint8Array | undefined {
  return isSealed(record) ? record.subarray(sealBytes) : undefined
}
