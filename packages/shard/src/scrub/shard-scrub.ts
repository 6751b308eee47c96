import { isSealed } from '@sectional/runtime'
import type { StoreEntry } from '@sectional/runtime'
import { ShardKeys } from '../records/key-layout.ts'
import { furtherChunksOf, joinBody } from '../records/body-record.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'
import { checkChangeLinks, checkDocumentLinks, checkLocalLinks, checkNewestChange } from './record-links.ts'

/**
 * Reads every record of a shard page by page, checks it, and checks that the records to which it refers exist. Other
 * work runs between the pages, and other writes may be applied meanwhile.
 * @param rest called after each page
 * @throws DamagedRecordError at the first damage; StorageError
 */
export async function scrubShard(records: ShardRecords, rest: () => Promise<void>): Promise<void> {
  await checkNewestChange(records)
  for await (const page of scanEntries(records.store, records.keys.all())) {
    for (const entry of page) await checkEntry(records, entry)
    await rest()
  }
}

async function checkEntry(records: ShardRecords, [key, value]: StoreEntry): Promise<void> {
  const kind = ShardKeys.kindOf(key)
  if (kind !== 'b') {
    if (!isSealed(value)) throw new DamagedRecordError(`a record of kind ${kind} is damaged: its checksum differs`)
    if (kind === 'i') checkDocumentLinks(records, key, value)
    else if (kind === 'l') checkLocalLinks(records, key, value)
    else if (kind === 's') checkChangeLinks(records, key, value)
    return
  }
  if (ShardKeys.bodyChunk(key) > 0) return
  const sequence = ShardKeys.sequence(key)
  try {
    if (furtherChunksOf(sequence, value) === 0) joinBody(sequence, value, [])
    else await records.body(sequence)
  } catch (error) {
    // The body of a replaced revision may have been dropped meanwhile.
    if (error instanceof DamagedRecordError && records.store.getSync(key) === undefined) return
    throw error
  }
}
