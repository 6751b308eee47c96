import { sealBytes, sealRecord } from '@sectional/runtime'
import type { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { checkSeal, DamagedRecordError } from './damaged-record.ts'
import { readLeaves } from './stored-leaves.ts'
import type { StoredLeaf } from './stored-leaves.ts'

/** One row of the changes log; no leaves: a local document. */
export interface ChangeRecord { readonly id: string; readonly leaves: readonly StoredLeaf[] }

const documentChange = 1
const localChange = 2

/**
 * The leaves are to follow, as `writeLeaves` puts them, then `finishDocumentChange`.
 * @param writer one that reserves `sealBytes`
 */
export function beginDocumentChange(writer: ByteWriter, id: string): void {
  writer.byte(documentChange)
  writer.text(id)
}

export function finishDocumentChange(writer: ByteWriter): Uint8Array {
  return sealRecord(writer.finish())
}

/** @param writer one that reserves `sealBytes` */
export function encodeLocalChange(writer: ByteWriter, id: string): Uint8Array {
  writer.byte(localChange)
  writer.text(id)
  return sealRecord(writer.finish())
}

/** @throws DamagedRecordError */
export function decodeChange(bytes: Uint8Array): ChangeRecord {
  checkSeal(bytes, 'a row of the changes log')
  const reader = new ByteReader(bytes, sealBytes)
  const kind = reader.byte()
  if (kind !== documentChange && kind !== localChange) throw new DamagedRecordError(`a change of unknown kind ${kind}`)
  const id = reader.text()
  return { id, leaves: kind === localChange ? [] : readLeaves(reader) }
}

/** @throws DamagedRecordError */
export function isLocalChange(bytes: Uint8Array): boolean {
  checkSeal(bytes, 'a row of the changes log')
  return bytes[sealBytes] === localChange
}
