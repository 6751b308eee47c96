import { isSealed } from '@sectional/runtime'

/** Stored bytes that are not what was written: callers see `ReplicaError('storage')` and turn to another replica. */
export class DamagedRecordError extends Error {
  override readonly name = 'DamagedRecordError'
}

/** @throws DamagedRecordError when the checksum differs */
export function checkSeal(record: Uint8Array, what: string): void {
  if (!isSealed(record)) throw new DamagedRecordError(`${what} is damaged: its checksum differs`)
}
