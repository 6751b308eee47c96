import type { PartitionInfo } from '@sectional/core'
import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { checkSeal } from './damaged-record.ts'
import type { DocumentRecord } from './document-record.ts'

export const emptyPartition: PartitionInfo = { documentCount: 0, deletedCount: 0, sizes: { active: 0, external: 0 } }

/**
 * Returns a partition's counts after one of its documents changed. `before` and `after` are null without a document.
 */
export function withDocument(
  { documentCount, deletedCount, sizes }: PartitionInfo, before: DocumentRecord | null, after: DocumentRecord | null,
): PartitionInfo {
  const sum = (of: (record: DocumentRecord) => number): number =>
    (after === null ? 0 : of(after)) - (before === null ? 0 : of(before))
  return {
    documentCount: documentCount + sum(record => record.deleted ? 0 : 1),
    deletedCount: deletedCount + sum(record => record.deleted ? 1 : 0),
    sizes: { active: sizes.active + sum(record =>
      record.encodedBytes + record.bodyBytes), external: sizes.external + sum(record => record.bodyBytes) },
  }
}

export function encodePartition({ documentCount, deletedCount, sizes }: PartitionInfo): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  for (const value of [documentCount, deletedCount, sizes.active, sizes.external]) writer.integer(value)
  return sealRecord(writer.finish())
}

export function decodePartition(partition: string, bytes: Uint8Array): PartitionInfo {
  checkSeal(bytes, `the record of partition ${partition}`)
  const reader = new ByteReader(bytes, sealBytes)
  return {
    documentCount: reader.integer(), deletedCount: reader.integer(),
    sizes: { active: reader.integer(), external: reader.integer() },
  }
}
