import { crc32 } from 'node:zlib'

/** Stored bytes that are not what was written: callers see `ReplicaError('storage')` and turn to another replica. */
export class DamagedRecordError extends Error {
  override readonly name = 'DamagedRecordError'
}

/** Bytes that `sealRecord` fills at the start of a record. */
export const sealBytes = 4

/**
 * LevelDB checks its blocks only during compaction (classic-level does not offer `verify_checksums`), and a
 * flipped bit in a revision would travel to every replica: so records carry a checksum of their own.
 */
export function sealRecord(record: Buffer): Buffer {
  record.writeUInt32BE(crc32(record.subarray(sealBytes)), 0)
  return record
}

/** @throws DamagedRecordError when the checksum differs */
export function checkSeal(record: Uint8Array, what: string): void {
  const stored = record.length < sealBytes ? -1 : (record[0]! << 24 | record[1]! << 16 | record[2]! << 8 | record[3]!) >>> 0
  if (stored !== crc32(record.subarray(sealBytes))) throw new DamagedRecordError(`${what} is damaged: its checksum differs`)
}
