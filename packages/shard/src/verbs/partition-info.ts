import type { PartitionInfo } from '@sectional/core'
import type { ShardRecords } from '../reading/shard-records.ts'
import { ShardKeys } from '../records/key-layout.ts'
import { emptyPartition, withDocument } from '../records/partition-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { scanEntries } from '../records/entry-scan.ts'

/** Reads the record of the partition. In a shard without such records, it scans the partition's documents. */
export async function partitionInfo(records: ShardRecords, partition: string): Promise<PartitionInfo> {
  if (records.partitioned) return records.partition(partition)
  let found = emptyPartition
  const range = records.keys.ids('i', { id: `${partition}:`, inclusive: true }, {
    id: `${partition};`, inclusive: false,
  })
  for await (const page of scanEntries(records.store, range)) {
    for (const [key, value] of page) {
      found = withDocument(found, null, DocumentRecord.decode(ShardKeys.text(key), value))
    }
  }
  return found
}
