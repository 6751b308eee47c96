/**
 * One replica decides each edit (design.md section 4): whether it conflicts, and which revision it makes. The
 * others receive what was decided.
 *
 * When a replica does not answer, the next one is asked, although the first may have decided after all. That is
 * safe: the same edit of the same parent gives the same revision id everywhere, so two replicas that both decide
 * it agree. Only when another edit came between does the first one's revision stay as a conflict branch, which
 * the revision trees keep and anti-entropy spreads: nothing is lost. The client then hears 409 for an edit whose
 * outcome was unknown, as it would hear after a broken connection.
 */
import { parseRevision } from '@sectional/core'
import type { DocumentEdit, EditOutcome, ReplicaError, ShardReplica } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { decision, decisionStep, withRefusal } from '../quorum/decision.ts'
import { mapBounded } from './bounded-parallel.ts'
import { readCall, writeCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext } from './coordinator.ts'
import { convergeDocument } from './document-convergence.ts'
import type { Peer, ShardPlace } from './replica-access.ts'
import { asReplicaError, shardFailure } from './replica-failures.ts'
import { branchRevisions } from './revision-merge.ts'

export interface DecidedEdits {
  /** Has the decided revisions on its disk. */
  readonly decider: Peer
  /** One per edit. */
  readonly outcomes: readonly EditOutcome[]
}

/**
 * Has the edits decided by the first replica that can.
 *
 * @throws ApiError when no replica decides
 */
export async function decideEdits(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], context: RequestContext,
): Promise<DecidedEdits> {
  const deciders = scope.access.deciders(place)
  const errors: ReplicaError[] = []
  const call = writeCall(scope.options.decisionTimeoutMs, context)
  let unknownOutcome = false
  let state = decision(deciders.length)
  for (let step = decisionStep(state); step.kind === 'ask'; step = decisionStep(state)) {
    const decider = deciders[step.replica]!
    try {
      const reply = await decider.replica.updateDocuments({ edits, revsLimit: db.revsLimit, ...(step.force && { force: true }) }, call)
      scope.decisionHealth.answered(decider.node)
      if (reply.kind === 'decided') {
        scope.metrics.decision(step.force ? 'forced' : step.replica === 0 ? 'first' : 'failover')
        const outcomes = reply.outcomes.some(outcome => outcome.kind === 'conflict') && deciders.length > 1
          ? await reviewConflicts(scope, db, place, decider, edits, reply.outcomes, unknownOutcome, context)
          : reply.outcomes
        return { decider, outcomes }
      }
      state = withRefusal(state, 'declined')
    } catch (error) {
      const failure = asReplicaError(error)
      errors.push(failure)
      if (failure.code === 'timeout') scope.decisionHealth.silent(decider.node)
      unknownOutcome ||= failure.code === 'timeout' || failure.code === 'unreachable'
      state = withRefusal(state, 'failed')
    }
  }
  throw shardFailure(errors)
}

/**
 * A conflict may only mean that the decider lags: it lacks the parent, or has not heard that the document was
 * deleted. Then it is brought up to date and decides again, once. And after an attempt whose outcome is unknown
 * a conflict may be the edit itself, already there.
 */
async function reviewConflicts(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, decider: Peer, edits: readonly DocumentEdit[],
  decided: readonly EditOutcome[], unknownOutcome: boolean, context: RequestContext,
): Promise<readonly EditOutcome[]> {
  const conflicts = decided.flatMap((outcome, index) => outcome.kind === 'conflict' ? [index] : [])
  const outcomes = [...decided]
  try {
    const suspects = await mapBounded(conflicts, scope.options.requestCallsMax, index => lags(scope, place, decider, edits[index]!, context))
    const lagging = conflicts.filter((_, i) => suspects[i])
    const ids = [...new Set(lagging.map(index => edits[index]!.id))]
    const refreshed = await mapBounded(ids, scope.options.repairsRunningMax, id =>
      convergeDocument(scope, db, place, id, context.requestId, peer => peer.node === decider.node))
    const learned = new Set(ids.filter((_, i) => refreshed[i]! > 0))
    const again = lagging.filter(index => learned.has(edits[index]!.id))
    if (again.length > 0) {
      const reply = await decider.replica.updateDocuments(
        { edits: again.map(index => edits[index]!), revsLimit: db.revsLimit, force: true }, writeCall(scope.options.decisionTimeoutMs, context))
      scope.metrics.decision('refreshed')
      if (reply.kind === 'decided') reply.outcomes.forEach((outcome, i) => { outcomes[again[i]!] = outcome })
    }
    if (unknownOutcome) await recognizeOwn(decider.replica, edits, outcomes, writeCall(scope.options.readTimeoutMs, context))
  } catch (error) {
    // The conflict stands: the decider is sure of it as far as it knows.
    scope.runtime.log.debug({ requestId: context.requestId, code: asReplicaError(error).code }, 'a conflict could not be reviewed')
  }
  return outcomes
}

/** Whether the decider's conflict may come from what it has not seen. */
async function lags(scope: CoordinatorScope, place: ShardPlace, decider: Peer, edit: DocumentEdit, context: RequestContext): Promise<boolean> {
  if (edit.parent !== null) {
    const [diff] = await decider.replica.diffRevisions([{ id: edit.id, revisions: [edit.parent] }], readCall(scope, context))
    return diff !== undefined && diff.missing.length > 0
  }
  if (edit.deleted) return false
  const other = scope.access.readers(place).find(peer => peer.node !== decider.node)
  const snapshot = await other?.replica.openDocument({ id: edit.id, body: false, tree: false }, readCall(scope, context))
  return snapshot?.leaves[0]?.deleted === true
}

/** Turns a conflict into success where the decider has the very revision that the edit makes. */
async function recognizeOwn(replica: ShardReplica, edits: readonly DocumentEdit[], outcomes: EditOutcome[], call: ReturnType<typeof writeCall>): Promise<void> {
  for (const [index, edit] of edits.entries()) {
    if (outcomes[index]!.kind !== 'conflict') continue
    const own = `${edit.parent === null ? 1 : parseRevision(edit.parent).generation + 1}-${edit.revisionHash}`
    const snapshot = await replica.openDocument({ id: edit.id, body: false, tree: true }, call)
    for (const branch of snapshot?.tree ?? []) {
      const at = branchRevisions(branch).indexOf(own)
      if (at < 0) continue
      outcomes[index] = { kind: 'updated', path: { start: branch.path.start - at, ids: branch.path.ids.slice(at) } }
      break
    }
  }
}
