import { isSealed } from '@sectional/runtime'

/**
 * Stored bytes differ from those that were written. The call on the replica fails with `ReplicaError('storage')`, and
 * the coordinator uses another replica.
 */
export class DamagedRecordError extends Error {
  override readonly name = 'DamagedRecordError'
}

/** @throws DamagedRecordError when the checksum differs */
export function checkSeal(record: Uint8Array, what: string): void {
  if (!isSealed(record)) throw new DamagedRecordError(`${what} is damaged: its checksum differs`)
}
