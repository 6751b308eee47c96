import { sealBytes, sealRecord } from '@sectional/runtime'
import type { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { checkSeal, DamagedRecordError } from './damaged-record.ts'
import { readLeaves } from './stored-leaves.ts'
import type { StoredLeaf } from './stored-leaves.ts'

/** A row of the changes log. */
export interface ChangeRecord {
  readonly id: string
  /** Empty for a local or purged document. */
  readonly leaves: readonly StoredLeaf[]
  /** A purge removed the document completely. */
  readonly purged?: true
}

const documentChange = 1
const localChange = 2
const purgedChange = 3

/**
 * Begins a row. The caller then writes the leaves with `writeLeaves`, and calls `finishDocumentChange`.
 *
 * @param writer a writer that reserves `sealBytes`
 */
export function beginDocumentChange(writer: ByteWriter, id: string): void {
  writer.byte(documentChange)
  writer.text(id)
}

export function finishDocumentChange(writer: ByteWriter): Uint8Array {
  return sealRecord(writer.finish())
}

/** @param writer a writer that reserves `sealBytes` */
export function encodeLocalChange(writer: ByteWriter, id: string): Uint8Array {
  return encodeBareChange(writer, localChange, id)
}

/** @param writer a writer that reserves `sealBytes` */
export function encodePurgedChange(writer: ByteWriter, id: string): Uint8Array {
  return encodeBareChange(writer, purgedChange, id)
}

function encodeBareChange(writer: ByteWriter, kind: number, id: string): Uint8Array {
  writer.byte(kind)
  writer.text(id)
  return sealRecord(writer.finish())
}

/** @throws DamagedRecordError */
export function decodeChange(bytes: Uint8Array): ChangeRecord {
  checkSeal(bytes, 'a row of the changes log')
  const reader = new ByteReader(bytes, sealBytes)
  const kind = reader.byte()
  if (kind < documentChange || kind > purgedChange) throw new DamagedRecordError(`a change of unknown kind ${kind}`)
  const id = reader.text()
  if (kind === purgedChange) return { id, leaves: [], purged: true }
  return { id, leaves: kind === localChange ? [] : readLeaves(reader) }
}

/** Whether the row is of a document, and not of a local or a purged one. @throws DamagedRecordError */
export function isDocumentChange(bytes: Uint8Array): boolean {
  checkSeal(bytes, 'a row of the changes log')
  return bytes[sealBytes] === documentChange
}
