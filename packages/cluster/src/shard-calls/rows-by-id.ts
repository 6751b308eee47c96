import { compareUtf8 } from '@sectional/core'
import type { IdBound } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { mergeRows } from './row-merge.ts'
import { scanShard } from './shard-scan.ts'
import type { ShardScan } from './shard-scan.ts'

interface IdRow { readonly id: string; readonly body?: Uint8Array | null }

/** The rows to list. `start` is the first one in the direction of the list. */
interface ListedRows {
  readonly start?: IdBound | undefined
  readonly descending: boolean
  readonly skip: number
  readonly limit: number | null
}

/**
 * Returns the rows of all shards in the byte order of their ids. The number of rows and the bytes of their bodies limit
 * a page.
 * @param open reads one replica in that order
 */
export function rowsById<Row extends IdRow>(
  scope: CoordinatorScope, places: readonly ShardPlace[], { start, descending, skip, limit }: ListedRows,
  open: ShardScan<Row, IdBound>['open'], context: OperationContext,
): AsyncIterable<readonly Row[]> {
  const scan: ShardScan<Row, IdBound> = {
    open, behind, ...(start && { start }), ...(limit !== null && { limit: skip + limit }),
  }
  const sources = limit === 0 ? [] : places.map(place => scanShard(scope, place, scan, context))
  const compare = descending ? descendingIds : ascendingIds
  return scope.pages.hold(pages => mergeRows(sources, { compare, bytesOf: bodyBytes, skip, limit, ...pages }))
}

function behind({ id }: IdRow): IdBound {
  return { id, inclusive: false }
}

function ascendingIds(a: IdRow, b: IdRow): number {
  return compareUtf8(a.id, b.id)
}

function descendingIds(a: IdRow, b: IdRow): number {
  return compareUtf8(b.id, a.id)
}

function bodyBytes({ body }: IdRow): number {
  return body?.length ?? 0
}
