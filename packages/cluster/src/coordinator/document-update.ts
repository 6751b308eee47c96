import { ApiError, attemptMax, editedAttachments } from '@sectional/core'
import type { DocumentEdit, DocumentRevision } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { DecidedOutcome } from '../documents/conflict-review.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { DocumentWrite, OperationContext, WriteOptions, WriteOutcome } from '../contracts/coordinator.ts'
import { majority } from '../quorum/majority.ts'
import { requestDecision } from '../documents/edit-decision.ts'
import type { DecidedEdits } from '../documents/edit-decision.ts'
import { partitionLimit } from '../documents/partition-limit.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { distributeRevisions } from '../documents/revisions-distribution.ts'
import { batchByShard } from '../shard-calls/shard-batches.ts'
import type { ShardBatch } from '../shard-calls/shard-batches.ts'
import { passesUnvalidated, validateEdits, writePassed } from '../validation/write-validation.ts'
import { errorOutcome } from '../documents/write-outcome.ts'
import { WriteTally } from '../documents/write-tally.ts'

/**
 * Batches with more documents take turns with other long work of this node. The batches of all shards in one turn share
 * an fsync.
 */
const smallBatch = 200

/**
 * Makes interactive edits: they are validated, one replica per shard decides them, then the others receive the
 * revisions. Returns one outcome per write, in order.
 */
export async function updateDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly DocumentWrite[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly WriteOutcome[]> {
  if (passesUnvalidated(scope, db, writes, options)) return updateValidated(scope, db, writes, options, context)
  const refusals = await validateEdits(scope, db, writes, options.user!, context)
  return writePassed(writes, refusals, passed => updateValidated(scope, db, passed, options, context))
}

async function updateValidated(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly DocumentWrite[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly WriteOutcome[]> {
  const [only] = writes
  if (writes.length === 1) {
    const place = scope.access.placeOf(db, only!.id)
    if (scope.access.loneLocal(place) !== undefined) return updateAlone(scope, db, place, writes, options, context)
  }
  const outcomes = new Array<WriteOutcome>(writes.length)
  const failures: ApiError[] = []
  await Promise.all(batchByShard(scope.access, db, writes, scope.options).map(async ({ place, batches }) => {
    const distributions: Promise<unknown>[] = []
    for (const batch of batches) {
      if (batch.items.length > smallBatch) await scope.runtime.turns.pause()
      // Batches are decided one after the other, so that two edits of the same id are decided in order. Distribution of
      // the batches overlaps.
      const decided = await decideBatch(scope, db, place, batch, options, context, outcomes, failures)
      if (decided !== undefined) distributions.push(decided.distributed)
    }
    await Promise.all(distributions)
  }))
  if (failures.length > 0 && outcomes.every(outcome => outcome.kind === 'error')) throw failures[0]!
  return outcomes
}

/** Makes edits in a shard whose only replica is on this node. Nothing needs to be distributed. */
async function updateAlone(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly WriteOutcome[]> {
  try {
    const replica = scope.access.loneLocal(place)!
    const reply = await replica.updateDocuments(
      { edits, revsLimit: db.revsLimit, force: true, ...partitionLimit(db, options) },
      writeCall(scope.options.requestTimeoutMs, context),
    )
    if (reply.kind === 'declined') throw new ApiError('internal_server_error', 'No DB shards could be opened.')
    const tally = new WriteTally(scope.access, place, options.w)
    tally.durable(scope.access.node)
    const accepted = tally.verdict() !== 'met'
    scope.metrics.write(accepted ? 'accepted' : 'met')
    return reply.outcomes.map((outcome, i) => writeOutcome(edits[i]!.id, outcome, accepted))
  } catch (error) {
    throw error instanceof ApiError ? error : shardFailure([asReplicaError(error)])
  }
}

/** Sets the outcomes of one batch. Failures and conflicts are set at once, the others when `distributed` resolves. */
async function decideBatch(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, batch: ShardBatch<DocumentWrite>,
  options: WriteOptions,
  context: OperationContext, outcomes: WriteOutcome[], failures: ApiError[],
): Promise<{ readonly distributed: Promise<unknown> } | undefined> {
  const edits = withAttempts(scope, place, batch.items)
  const distributions: Promise<void>[] = []
  try {
    await requestDecision(scope, db, place, edits, options, context, part => {
      const items = part.places.map(i => edits[i]!)
      const indexes = part.places.map(i => batch.indexes[i]!)
      distributions.push(
        distributeDecided(scope, place, { items, indexes }, part, options, context, outcomes, failures))
    })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    failures.push(error)
    for (const index of batch.indexes) outcomes[index] = errorOutcome(error)
    return undefined
  }
  return { distributed: Promise.all(distributions) }
}

/** Sets the outcomes of the edits that one replica has decided, and sends the revisions to the others. */
async function distributeDecided(
  scope: CoordinatorScope, place: ShardPlace, { items: edits, indexes }: ShardBatch<DocumentEdit>,
  decided: DecidedEdits, options: WriteOptions, context: OperationContext, outcomes: WriteOutcome[],
  failures: ApiError[],
): Promise<void> {
  const revisions: DocumentRevision[] = []
  /** The position among the edits of each revision. */
  const places: number[] = []
  decided.outcomes.forEach((outcome, i) => {
    const edit = edits[i]!
    if (outcome.kind === 'updated') {
      places.push(i)
      revisions.push(decidedRevision(edit, outcome))
    }
    if (outcome.kind === 'unknown') failures.push(unknownOutcome())
    outcomes[indexes[i]!] = writeOutcome(edit.id, outcome, false)
  })
  if (revisions.length === 0) return
  // Only a decider that knows the acknowledged writes can say that no other edit of the same revision succeeded.
  const isExclusive = options.w === undefined || options.w >= majority(place.activeCount)
  const { verdict, rivals } = await distributeRevisions(
    scope, place, { revisions, revsLimit: place.db.revsLimit }, decided.decider, options.w, context,
  )
  if (verdict !== 'met' || (!decided.current && isExclusive)) {
    decided.outcomes.forEach((outcome, i) => {
      outcomes[indexes[i]!] = writeOutcome(edits[i]!.id, outcome, true)
    })
  }
  for (const index of rivals) {
    const error = rivalOutcome()
    failures.push(error)
    outcomes[indexes[places[index]!]!] = errorOutcome(error)
  }
}

/** Adds an attempt number to each edit. The only replica of a shard is asked once and needs none. */
function withAttempts(
  scope: CoordinatorScope, place: ShardPlace, items: readonly DocumentEdit[],
): readonly DocumentEdit[] {
  if (place.record.replicas.length === 1) return items
  const first = 1 + Math.floor(scope.runtime.random.fraction() * (attemptMax - items.length))
  return items.map(({ id, parent, deleted, body, revisionHash, attachments }, i) => (
    { id, parent, deleted, body, revisionHash, attempt: first + i, ...(attachments && { attachments }) }))
}

function decidedRevision(
  edit: DocumentEdit, { path, purges }: DecidedOutcome & { readonly kind: 'updated' },
): DocumentRevision {
  const { id, deleted, body, attempt } = edit
  return {
    id, path, deleted, body, ...editedAttachments(edit, path.start), ...(purges && { purges }),
    ...(attempt !== undefined && { attempt }),
  }
}

/** Seconds after which a client is asked to try again. A silent node is detected within four seconds. */
const comeBack = { headers: { 'Retry-After': '5' } }

function unknownOutcome(): ApiError {
  return new ApiError(
    'service_unavailable',
    'It is not known whether the document was written: a node did not answer. Read the document before you try again.',
    comeBack,
  )
}

/** Two replicas decided at the same time, so that it is not certain which edit wins. */
function rivalOutcome(): ApiError {
  const reason = 'Another edit of the same revision was made at the same time on another node, and may win. '
    + 'Read the document before you try again.'
  return new ApiError('service_unavailable', reason, comeBack)
}

function writeOutcome(id: string, outcome: DecidedOutcome, accepted: boolean): WriteOutcome {
  // A tombstone that cannot be named has just been replaced by other clients.
  if (outcome.kind === 'conflict' || outcome.kind === 'tombstone') return { kind: 'conflict' }
  if (outcome.kind === 'unknown') return errorOutcome(unknownOutcome())
  if (outcome.kind === 'partition_overflow') {
    return errorOutcome(new ApiError('partition_overflow', `Partition limit exceeded due to update on '${id}'`))
  }
  return { kind: 'written', revision: `${outcome.path.start}-${outcome.path.ids[0]}`, accepted }
}
