import { ApiError, documentLeavesMax, treeRevisionsMax } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ReplicatedWrite, OperationContext, WriteOptions, WriteOutcome } from '../contracts/coordinator.ts'
import { passesUnvalidated, validateRevisions, writePassed } from '../validation/write-validation.ts'
import { errorOutcome } from '../documents/write-outcome.ts'
import { shardFailure } from '../replicas/replica-failures.ts'
import { distributeRevisions } from '../documents/revisions-distribution.ts'
import { batchByShard } from '../shard-calls/shard-batches.ts'

/**
 * Batches with more documents take turns with other long work of this node. The batches of all shards in one turn share
 * an fsync.
 */
const smallBatch = 200

/**
 * Number of ancestors of one revision that are sent to the replicas beyond those that a branch can keep. They may show
 * where the revision joins the tree. Each ancestor costs every replica time, and one request could carry a million of
 * them.
 */
const joiningAncestorsMax = 10_000

/**
 * Stores revisions that come with their history (`new_edits=false`), after their validation. There is nothing to
 * decide: all replicas merge them at the same time.
 */
export async function storeRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly ReplicatedWrite[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly WriteOutcome[]> {
  if (passesUnvalidated(scope, db, writes, options)) return storeValidated(scope, db, writes, options, context)
  const refusals = await validateRevisions(scope, db, writes, options.user!, context)
  return writePassed(writes, refusals, passed => storeValidated(scope, db, passed, options, context))
}

async function storeValidated(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly ReplicatedWrite[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly WriteOutcome[]> {
  const outcomes = new Array<WriteOutcome>(writes.length)
  const failures: ApiError[] = []
  const ancestorsMax = Math.min(db.revsLimit, treeRevisionsMax) + joiningAncestorsMax
  const isLong = ({ path }: ReplicatedWrite): boolean => path.ids.length > ancestorsMax
  const shortened = writes.map(write => isLong(write) ? withNewest(write, ancestorsMax) : write)
  const groups = batchByShard(scope.access, db, shortened, scope.options)
  await Promise.all(groups.map(async ({ place, batches }) => {
    for (const { items, indexes } of batches) {
      if (items.length > smallBatch) await scope.runtime.turns.pause()
      const { verdict, errors, refused } = await distributeRevisions(
        scope, place, { revisions: items, revsLimit: db.revsLimit, external: true }, null, options.w, context,
      )
      const failure = verdict === 'failed' ? shardFailure(errors) : undefined
      if (failure !== undefined) failures.push(failure)
      indexes.forEach((index, i) => {
        const { path } = items[i]!
        outcomes[index] = failure !== undefined ? errorOutcome(failure) : refused.has(i) ? errorOutcome(tooManyBranches)
          : { kind: 'written', revision: `${path.start}-${path.ids[0]}`, accepted: verdict === 'accepted' }
      })
    }
  }))
  if (failures.length > 0 && outcomes.every(outcome => outcome.kind === 'error')) throw failures[0]!
  return outcomes
}

const tooManyBranches = new ApiError(
  'document_too_large', `the document has ${documentLeavesMax} branches; purge some of them before you add others`,
)

function withNewest(write: ReplicatedWrite, revisions: number): ReplicatedWrite {
  const { start, ids } = write.path
  return { ...write, path: { start, ids: ids.slice(0, revisions) } }
}
