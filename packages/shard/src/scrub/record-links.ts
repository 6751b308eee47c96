/**
 * Checks that the records of a shard refer to each other. A record that is missing, or that is stored under a wrong
 * key, has no checksum that could fail; only the records that refer to it show the damage. Other writes may be applied
 * at any time, so two reads can see two different states.
 */
import { ShardKeys } from '../records/key-layout.ts'
import { decodeChange } from '../records/change-record.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { decodeLocal } from '../records/local-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/**
 * Checks that a document has a row in the changes log, and a body for each revision whose body the tree names: the
 * leaves and the revisions that were replaced since the last compaction.
 * @param value the value that was read under the document's key
 * @throws DamagedRecordError
 */
export function checkDocumentLinks(records: ShardRecords, key: string, value: Uint8Array): void {
  const id = ShardKeys.text(key)
  const { sequence, tree } = DocumentRecord.decode(id, value)
  checkRow(records, key, value, sequence)
  for (const bodySequence of tree.bodyKeys()) {
    if (records.store.getSync(records.keys.body(bodySequence)) === undefined) records.assertGone(id, bodySequence)
  }
}

/** Checks that a local document has a row in the changes log. @throws DamagedRecordError */
export function checkLocalLinks(records: ShardRecords, key: string, value: Uint8Array): void {
  checkRow(records, key, value, decodeLocal(ShardKeys.text(key), value).sequence)
}

function checkRow({ store, keys }: ShardRecords, key: string, value: Uint8Array, sequence: number): void {
  const id = ShardKeys.text(key)
  const row = store.getSync(keys.change(sequence))
  // If the document was written again meanwhile, its row has moved.
  if ((row === undefined || decodeChange(row).id !== id) && isSame(store.getSync(key), value)) {
    throw new DamagedRecordError(`${id} has no row in the changes log at its sequence ${sequence}`)
  }
}

/**
 * Checks that a row of the changes log belongs to the last change of its document or to a recorded purge.
 * @throws DamagedRecordError
 */
export function checkChangeLinks(records: ShardRecords, key: string, value: Uint8Array): void {
  const { store, keys } = records
  const sequence = ShardKeys.sequence(key)
  const { id, leaves, purged } = decodeChange(value)
  if (purged) {
    const isRecorded = records.purges(id).some(purge => purge.changeSequence === sequence)
    if (isRecorded || store.getSync(key) === undefined) return
    throw new DamagedRecordError(`the changes log has a purge of ${id} at sequence ${sequence}, which is not recorded`)
  }
  const local = leaves.length === 0
  const named = local ? keys.localDocument(id) : keys.document(id)
  const before = store.getSync(named)
  const found = before && (local ? decodeLocal(id, before) : DocumentRecord.decode(id, before)).sequence
  if (found === sequence || store.getSync(key) === undefined) return
  if (isSame(store.getSync(named), before)) {
    const problem = before === undefined ? 'is missing' : 'names another one'
    throw new DamagedRecordError(`the changes log has ${id} at sequence ${sequence}, and its record ${problem}`)
  }
}

/**
 * Checks that the counters name the newest row of the changes log, and that this row exists. @throws DamagedRecordError
 */
export async function checkNewestChange(records: ShardRecords): Promise<void> {
  const before = await newestChange(records)
  const { sequence, purgeSequence } = records.state()
  // A purge takes a sequence but may leave no row.
  const after = purgeSequence > 0 ? sequence : await newestChange(records)
  if (before > sequence || after < sequence) {
    throw new DamagedRecordError(
      `the counters are of sequence ${sequence}, and the changes log ends at ${Math.max(before, after)}`,
    )
  }
}

async function newestChange({ store, keys }: ShardRecords): Promise<number> {
  for await (const page of scanEntries(store, keys.kind('s'), { reverse: true, limit: 1, values: false })) {
    return ShardKeys.sequence(page[0]![0])
  }
  return 0
}

/** Whether the changes log shows that the record under a document's key belongs to another document. */
export function isMisplaced({ store, keys }: ShardRecords, id: string, sequence: number): boolean {
  const row = store.getSync(keys.change(sequence))
  try {
    return row !== undefined && decodeChange(row).id !== id
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error
    return false
  }
}

function isSame(left: Uint8Array | undefined, right: Uint8Array | undefined): boolean {
  return left === undefined || right === undefined ? left === right : Buffer.compare(left, right) === 0
}
