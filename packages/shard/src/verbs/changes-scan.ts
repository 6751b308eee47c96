import type { ChangeRow, ScanChangesRequest } from '@sectional/core'
import { ShardKeys } from '../key-layout.ts'
import { decodeChange } from '../records/change-record.ts'
import { asLeaves } from '../records/stored-leaves.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../shard-records.ts'
import { withBodies } from './body-pages.ts'
import { scanEntries } from './entry-scan.ts'

/** Each document once, at its last change, as of the first page. */
export async function* scanChanges(records: ShardRecords, request: ScanChangesRequest): AsyncGenerator<readonly ChangeRow[]> {
  const range = request.descending ? records.keys.kind('s') : records.keys.changesAfter(request.since)
  let left = request.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  for await (const page of scanEntries(records.store, range, { reverse: request.descending }, left)) {
    const rows: { row: ChangeRow; leaf: StoredLeaf | undefined }[] = []
    for (const [key, value] of page) {
      if (rows.length >= left) break
      const { id, leaves } = decodeChange(value)
      const local = leaves.length === 0
      if (local && !request.locals) continue
      const row: ChangeRow = { sequence: ShardKeys.sequence(key), id, leaves: asLeaves(leaves), ...(local ? { local: true as const } : {}) }
      rows.push({ row, leaf: leaves[0] })
    }
    left -= rows.length
    if (rows.length > 0) {
      if (request.body) yield* withBodies(records, rows)
      else yield rows.map(({ row }) => row)
    }
    if (left <= 0) return
  }
}
