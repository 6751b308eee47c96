import type { Purge, PurgeRow } from '@sectional/core'
import { sealBytes, sealed, sealRecord } from '@sectional/runtime'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { checkSeal, DamagedRecordError } from './damaged-record.ts'

/** A recorded purge as it is stored. */
export interface StoredPurge extends PurgeRow {
  /** Sequence of its row in the changes log; 0: it has no row, because it did not remove its document completely. */
  readonly changeSequence: number
}

const format = 2
/** The first format has no `changeSequence`. */
const firstFormat = 1

/** Encodes a row of the purge log, which is the id of the purged document. */
export function encodePurgedId(id: string): Uint8Array {
  return sealed(Buffer.from(id))
}

/** @throws DamagedRecordError */
export function decodePurgedId(bytes: Uint8Array): string {
  checkSeal(bytes, 'a row of the purge log')
  return Buffer.from(bytes.subarray(sealBytes)).toString('utf8')
}

/** Encodes the recorded purges of one document, oldest first. */
export function encodePurges(purges: readonly StoredPurge[]): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.byte(format)
  writer.integer(purges.length)
  for (const { uuid, sequence, changeSequence, paths } of purges) {
    writer.text(uuid)
    writer.integer(sequence)
    writer.integer(changeSequence)
    writer.integer(paths.length)
    for (const { start, ids } of paths) {
      writer.integer(start)
      writer.integer(ids.length)
      for (const hash of ids) writer.text(hash)
    }
  }
  return sealRecord(writer.finish())
}

export function decodePurges(id: string, bytes: Uint8Array): StoredPurge[] {
  checkSeal(bytes, `the purges of document ${id}`)
  const reader = new ByteReader(bytes, sealBytes)
  const found = reader.byte()
  if (found !== format && found !== firstFormat) {
    throw new DamagedRecordError(`the purges of document ${id} have format ${found}; this version reads ${format}`)
  }
  return times(reader.integer(), () => ({
    uuid: reader.text(), sequence: reader.integer(), changeSequence: found === firstFormat ? 0 : reader.integer(), id,
    paths: times(reader.integer(), () => readPath(reader)),
  }))
}

function readPath(reader: ByteReader): Purge['paths'][number] {
  return { start: reader.integer(), ids: times(reader.integer(), () => reader.text()) }
}

function times<T>(count: number, read: () => T): T[] {
  return Array.from({ length: count }, read)
}
