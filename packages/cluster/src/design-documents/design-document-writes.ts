import { designPrefix } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { KnownDesignDocuments } from '../shard-calls/coordinator-scope.ts'

/**
 * Returns the result of `writing`. If it may have written a design document, the cache of this node is told before the
 * result is available, then the other nodes. This is done even when the writing fails, because a failed write may still
 * take effect.
 *
 * @param tellOthers resolves when the linked nodes have the notice, or after a limited time; never rejects
 */
export function announceDesigns<Result>(
  designs: KnownDesignDocuments, db: DatabaseRecord, writes: readonly { readonly id: string }[],
  writing: Promise<Result>, tellOthers: (incarnation: string) => Promise<void>,
): Promise<Result> {
  if (!writes.some(({ id }) => id.startsWith(designPrefix))) return writing
  return writing.finally(() => {
    designs.written(db.incarnation)
    return tellOthers(db.incarnation)
  })
}
