/**
 * Checks that the records of a shard name each other. A record that is missing, or lies under another key than it was
 * written with, has no checksum that differs: it shows in those that name it. Others may write meanwhile, so two reads
 * are two moments.
 */
import { ShardKeys } from '../records/key-layout.ts'
import { decodeChange } from '../records/change-record.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { decodeLocal } from '../records/local-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/**
 * A document has a row in the changes log, and each revision of which the tree names a body has it: its leaves, and
 * those that were replaced since the last compaction.
 * @param value what was found under its key
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

/** A local document has a row in the changes log. @throws DamagedRecordError */
export function checkLocalLinks(records: ShardRecords, key: string, value: Uint8Array): void {
  checkRow(records, key, value, decodeLocal(ShardKeys.text(key), value).sequence)
}

function checkRow({ store, keys }: ShardRecords, key: string, value: Uint8Array, sequence: number): void {
  const id = ShardKeys.text(key)
  const row = store.getSync(keys.change(sequence))
  // What has been written anew since has another row.
  if ((row === undefined || decodeChange(row).id !== id) && isSame(store.getSync(key), value)) {
    throw new DamagedRecordError(`${id} has no row in the changes log at its sequence ${sequence}`)
  }
}

/**
 * A row of the changes log is that of the last change of its document, or of a recorded purge.
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
    throw new DamagedRecordError(`the changes log has ${id} at sequence ${sequence}, and its record ${before === undefined ? 'is missing' : 'names another one'}`)
  }
}

/** The counters know the newest row of the changes log, and it is there. @throws DamagedRecordError */
export async function checkNewestChange(records: ShardRecords): Promise<void> {
  const before = await newestChange(records)
  const { sequence, purgeSequence } = records.state()
  // A purge takes a sequence and may leave no row.
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

/** Whether the changes log says that what lies under a document's key was written as another document. */
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
