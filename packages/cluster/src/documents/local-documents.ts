/** The placement of local documents, and the order of their versions. */
import type { LocalDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'

const none = Buffer.alloc(0)

/** Returns the place of a local document, which is determined by its whole id. */
export function localPlace(scope: CoordinatorScope, db: DatabaseRecord, id: string): ShardPlace {
  return scope.access.placeOf(db, `_local/${id}`)
}

/** Returns the newest version: the greatest stamp, then revision, then body bytes. A deletion comes before any body. */
export function newestLocal(documents: readonly (LocalDocument | null)[]): LocalDocument | null {
  const newer = (best: LocalDocument | null, each: LocalDocument | null) =>
    best === null || (each !== null && compareLocals(each, best) > 0) ? each : best
  return documents.reduce(newer, null)
}

/** Returns a number less than zero when `a` is the older version. */
export function compareLocals(a: LocalDocument, b: LocalDocument): number {
  return a.stamp - b.stamp || a.revision - b.revision || Buffer.compare(a.body ?? none, b.body ?? none)
}

/** Stores a version of a local document on one replica. */
export async function storeLocal(
  scope: CoordinatorScope, db: DatabaseRecord, peer: Peer, local: LocalDocument, context: OperationContext,
): Promise<void> {
  const call = writeCall(scope.options.storeTimeoutMs, context)
  await peer.replica.storeRevisions({ revisions: [], locals: [local], revsLimit: db.revsLimit }, call)
}
