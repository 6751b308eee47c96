import type { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { DamagedRecordError } from './damaged-record.ts'
import { readLeaves } from './stored-leaves.ts'
import type { StoredLeaf } from './stored-leaves.ts'

/** One row of the changes log; no leaves: a local document. */
export interface ChangeRecord { readonly id: string; readonly leaves: readonly StoredLeaf[] }

const documentChange = 1
const localChange = 2

/** The leaves are to follow, as `writeLeaves` puts them. */
export function beginDocumentChange(writer: ByteWriter, id: string): void {
  writer.byte(documentChange)
  writer.text(id)
}

export function encodeLocalChange(writer: ByteWriter, id: string): Uint8Array {
  writer.byte(localChange)
  writer.text(id)
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
