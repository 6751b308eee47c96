import { sealed, unsealed } from '@sectional/runtime'

/**
 * The metadata store on this disk has other values than were written to it, or lacks some. The node then does not
 * start: if it guessed the lost values, it could vote twice, or serve databases that nobody created.
 */
export class DamagedControlStoreError extends Error {
  override readonly name = 'DamagedControlStoreError'

  /** @param what the damage, as a clause */
  constructor(what: string, options?: { cause?: unknown }) {
    super(`the metadata of the cluster on this disk is damaged: ${what}. This node does not start on it. If other `
      + 'nodes have replicas of the data, empty this node\'s data directory and start it under the same name and '
      + 'address: the cluster admits it again, and the other nodes fill its replicas. If the cluster has no other '
      + 'node, restore a backup of the data directory (docs/operations.md).', options)
  }
}

export function writeJson(value: object): Uint8Array {
  return new Uint8Array(sealed(Buffer.from(JSON.stringify(value))))
}

/** @throws DamagedControlStoreError when the checksum differs; `what` names the record in its text */
export function readJson<T>(what: string, bytes: Uint8Array | undefined): T | undefined {
  if (bytes === undefined) return undefined
  const json = unsealed(bytes)
  if (json === undefined) throw new DamagedControlStoreError(`the checksum of ${what} differs`)
  return JSON.parse(Buffer.from(json).toString('utf8')) as T
}
