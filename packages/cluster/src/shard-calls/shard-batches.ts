import type { RevisionPath } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { ReplicaAccess, ShardPlace } from '../replicas/replica-access.ts'

/** Items of one request that go to one shard in one call. */
export interface ShardBatch<Item> {
  readonly items: readonly Item[]
  /** The position of each item in the request. */
  readonly indexes: readonly number[]
}

export interface ShardGroup<Item> { readonly place: ShardPlace; readonly batches: readonly ShardBatch<Item>[] }

type Batched = { readonly id: string; readonly body: Uint8Array; readonly path?: RevisionPath }

/** Bytes that an ancestor counts for in a batch. It costs as much time as this many bytes of a body. */
const ancestorBytes = 400

function bytesOf({ body, path }: Batched): number {
  return body.length + (path === undefined ? 0 : path.ids.length * ancestorBytes)
}

/**
 * Groups items by shard, in order of first appearance, and splits each group at the limits of one call. The order
 * within a shard is kept.
 */
export function batchByShard<Item extends Batched>(
  access: ReplicaAccess, db: DatabaseRecord, items: readonly Item[],
  bounds: Pick<CoordinatorOptions, 'batchDocumentsMax' | 'batchBytesMax'>,
): ShardGroup<Item>[] {
  const groups = new Map<ShardPlace, { items: Item[]; indexes: number[] }[]>()
  const bytes = new Map<ShardPlace, number>()
  items.forEach((item, index) => {
    const place = access.placeOf(db, item.id)
    let batches = groups.get(place)
    if (batches === undefined) groups.set(place, batches = [])
    let last = batches.at(-1)
    const full = last === undefined || last.items.length >= bounds.batchDocumentsMax
      || bytes.get(place)! + bytesOf(item) > bounds.batchBytesMax
    if (last === undefined || full) {
      batches.push(last = { items: [], indexes: [] })
      bytes.set(place, 0)
    }
    last.items.push(item)
    last.indexes.push(index)
    bytes.set(place, bytes.get(place)! + bytesOf(item))
  })
  return [...groups].map(([place, batches]) => ({ place, batches }))
}
