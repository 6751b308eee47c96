import type { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { DamagedRecordError } from './damaged-record.ts'
import { readLeaves, writeLeaves } from './stored-leaves.ts'
import type { StoredLeaf } from './stored-leaves.ts'

/** One row of the changes log; no leaves: a local document. */
export interface ChangeRecord { readonly id: string; readonly leaves: readonly StoredLeaf[] }

const documentChange = 1
const localChange = 2

export function encodeChange(writer: ByteWriter, { id, leaves }: ChangeRecord): Uint8Array {
  writer.byte(leaves.length === 0 ? localChange : documentChange)
  writer.text(id)
  if (leaves.length > 0) writeLeaves(writer, leaves)
  return writer.finish()
}

export function decodeChange(bytes: Uint8Array): ChangeRecord {
  const reader = new ByteReader(bytes)
  const kind = reader.byte()
  if (kind !== documentChange && kind !== localChange) throw new DamagedRecordError(`a change of unknown kind ${kind}`)
  const id = reader.text()
  return { id, leaves: kind === localChange ? [] : readLeaves(reader) }
}

export function isLocalChange(bytes: Uint8Array): boolean {
  return bytes[0] === localChange
}
