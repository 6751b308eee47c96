import type { PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow } from '@sectional/core'
import { RevisionTree } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import { decodePurgedId } from '../records/purge-records.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import type { WriteDraft } from '../writing/write-draft.ts'
import { scanEntries } from '../records/entry-scan.ts'

/** Number of records that are trimmed in one batch. */
const trimmedTogether = 200

/** Applies and records each purge that was not applied before. A purge that removes nothing is recorded as well. */
export function decidePurges(draft: WriteDraft, { purges, checkpoint }: PurgeDocumentsRequest): PurgeDocumentsReply {
  const reply = purges.map(purge => {
    if (draft.purges(purge.id).some(known => known.uuid === purge.uuid)) return []
    const purged = (draft.document(purge.id)?.tree ?? RevisionTree.empty).purge(purge.paths)
    draft.putPurge(purge, purged?.tree ?? null)
    draft.dropBodies(purged?.released ?? [])
    return purged?.purged ?? []
  })
  if (checkpoint !== undefined) draft.putPurgeCheckpoint(checkpoint.history, checkpoint.sequence)
  return reply
}

export async function* scanPurges(records: ShardRecords, since: number): AsyncGenerator<readonly PurgeRow[]> {
  for await (const page of scanEntries(records.store, records.keys.purgesAfter(since))) {
    const rows = page.flatMap(([key, value]) => {
      const sequence = ShardKeys.sequence(key)
      const found = records.purges(decodePurgedId(value)).filter(purge => purge.sequence === sequence)
      return found.map(({ uuid, id, paths }) => ({ uuid, id, paths, sequence }))
    })
    if (rows.length > 0) yield rows
  }
}

/** Returns the sequence of the oldest recorded purge; 0: no purge is recorded. */
export async function oldestPurge(records: ShardRecords): Promise<number> {
  for await (const [first] of scanEntries(records.store, records.keys.kind('p'), {}, 1)) {
    return first === undefined ? 0 : ShardKeys.sequence(first[0])
  }
  return 0
}

/** Lists the recorded purges up to a sequence, with sequence and document id, in pages of `trimmedTogether`. */
export async function* purgesUpTo(
  records: ShardRecords, sequence: number,
): AsyncGenerator<readonly { readonly sequence: number; readonly id: string }[]> {
  const range = { ...records.keys.kind('p'), lt: records.keys.purgesAfter(sequence).gte }
  for await (const page of scanEntries(records.store, range, {}, trimmedTogether)) {
    yield page.map(([key, value]) => ({ sequence: ShardKeys.sequence(key), id: decodePurgedId(value) }))
  }
}
