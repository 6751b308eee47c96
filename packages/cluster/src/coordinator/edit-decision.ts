/**
 * One replica decides each edit (design.md section 4): whether it conflicts, and which revision it makes. The
 * others receive what was decided.
 *
 * When a replica does not answer, the next one is asked, although the first may have decided after all. That is
 * safe: the same edit of the same parent gives the same revision id everywhere, so two replicas that both decide
 * it agree. Only when another edit came between does the first one's revision stay as a conflict branch, which
 * the revision trees keep and anti-entropy spreads: nothing is lost. The client then hears 409 for an edit whose
 * outcome was unknown, as it would hear after a broken connection.
 *
 * The first replica of the map decides nearly everything and so has seen nearly everything. A stand-in has not,
 * nor has one that is catching up: before such a replica decides, it is given the leaves that the others have of
 * the documents at hand. And a conflict is only answered after a look at whether the decider lags.
 */
import { mapBounded, parseRevision } from '@sectional/core'
import type { CallContext, DocumentEdit, EditOutcome, Leaf, ReplicaError, UpdateDocumentsReply } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { decision, decisionStep, withRefusal } from '../quorum/decision.ts'
import { namedBlobs, provideBlobs } from './blob-transfer.ts'
import { writeCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext, WriteOptions } from './coordinator.ts'
import { convergeDocument } from './document-convergence.ts'
import { partitionLimit } from './partition-limit.ts'
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
export function decideEdits(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], options: WriteOptions, context: RequestContext,
): Promise<DecidedEdits> {
  return new EditDecision(scope, db, place, edits, options, context).run()
}

class EditDecision {
  readonly #scope: CoordinatorScope
  readonly #db: DatabaseRecord
  readonly #place: ShardPlace
  readonly #edits: readonly DocumentEdit[]
  readonly #options: WriteOptions
  readonly #context: RequestContext
  readonly #deciders: readonly Peer[]
  readonly #review: CallContext
  /** A replica that did not answer may have decided. */
  #unknownOutcome = false

  constructor(
    scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], options: WriteOptions, context: RequestContext,
  ) {
    this.#options = options
    this.#scope = scope
    this.#db = db
    this.#place = place
    this.#edits = edits
    this.#context = context
    this.#deciders = scope.access.deciders(place)
    this.#review = writeCall(scope.options.reviewTimeoutMs, context)
  }

  async run(): Promise<DecidedEdits> {
    const { metrics, decisionHealth, readHealth } = this.#scope
    const errors: ReplicaError[] = []
    const [first] = this.#deciders
    const usual = first !== undefined && this.#scope.access.isFirst(this.#place, first)
    let state = decision(this.#deciders.length, usual)
    for (let step = decisionStep(state); step.kind === 'ask'; step = decisionStep(state)) {
      const decider = this.#deciders[step.replica]!
      try {
        if (step.refresh) await this.#refresh(decider)
        const reply = await this.#ask(decider, this.#edits, step.refresh)
        decisionHealth.answered(decider.node)
        if (reply.kind === 'decided') {
          metrics.decision(!step.refresh ? 'first' : usual && step.replica === 0 ? 'catching_up' : 'stand_in')
          return { decider, outcomes: await this.#reviewConflicts(decider, reply.outcomes) }
        }
        state = withRefusal(state, 'declined')
      } catch (error) {
        const failure = asReplicaError(error)
        errors.push(failure)
        if (failure.code === 'timeout') for (const health of [decisionHealth, readHealth]) health.silent(decider.node)
        this.#unknownOutcome ||= failure.code === 'timeout' || failure.code === 'unreachable'
        state = withRefusal(state, 'failed')
      }
    }
    throw shardFailure(errors)
  }

  async #ask(decider: Peer, edits: readonly DocumentEdit[], force: boolean): Promise<UpdateDocumentsReply> {
    const { decisionTimeoutMs } = this.#scope.options
    const request = { edits, revsLimit: this.#db.revsLimit, ...partitionLimit(this.#db, this.#options), ...(force && { force }) }
    const call = writeCall(decisionTimeoutMs, this.#context)
    try {
      return await decider.replica.updateDocuments(request, call)
    } catch (error) {
      if (asReplicaError(error).code !== 'missing_blob') throw error
      await provideBlobs(this.#scope, decider, namedBlobs(edits), this.#place, call.requestId ?? '')
      return await decider.replica.updateDocuments(request, call)
    }
  }

  /** Stores on the decider what the other replicas have of the documents and it lacks. Who does not answer in time is not waited for. */
  async #refresh(decider: Peer): Promise<void> {
    const { access, readHealth } = this.#scope
    const others = access.readers(this.#place).filter(peer => peer.node !== decider.node)
    if (others.length === 0) return
    const ids = [...new Set(this.#edits.map(edit => edit.id))]
    const known = await mapBounded(ids, this.#scope.options.requestCallsMax, async id => {
      const answers = await Promise.allSettled(others.filter(peer => !readHealth.isSuspect(peer.node)).map(peer => this.#leavesOn(peer, id)))
      const leaves = answers.flatMap(answer => answer.status === 'fulfilled' ? answer.value : [])
      return { id, revisions: [...new Set(leaves.map(leaf => leaf.revision))] }
    })
    const diffs = await decider.replica.diffRevisions(known.filter(each => each.revisions.length > 0), this.#review)
    await this.#converge(decider, diffs.filter(diff => diff.missing.length > 0).map(diff => diff.id))
  }

  /**
   * A conflict may only mean that the decider lags: it lacks the parent, or has not heard that the document was
   * deleted. Then it is brought up to date and decides again, once. And after an attempt whose outcome is unknown
   * a conflict may be the edit itself, already there.
   */
  async #reviewConflicts(decider: Peer, decided: readonly EditOutcome[]): Promise<readonly EditOutcome[]> {
    const conflicts = decided.flatMap((outcome, index) => outcome.kind === 'conflict' ? [index] : [])
    if (conflicts.length === 0 || this.#deciders.length === 1) return decided
    const outcomes = [...decided]
    try {
      const suspects = await mapBounded(conflicts, this.#scope.options.requestCallsMax, index => this.#lags(decider, this.#edits[index]!))
      const lagging = conflicts.filter((_, i) => suspects[i])
      const learned = await this.#converge(decider, [...new Set(lagging.map(index => this.#edits[index]!.id))])
      const again = lagging.filter(index => learned.has(this.#edits[index]!.id))
      if (again.length > 0) {
        const reply = await this.#ask(decider, again.map(index => this.#edits[index]!), true)
        this.#scope.metrics.decision('reviewed')
        if (reply.kind === 'decided') reply.outcomes.forEach((outcome, i) => { outcomes[again[i]!] = outcome })
      }
      if (this.#unknownOutcome) await this.#recognizeOwn(decider, outcomes)
    } catch (error) {
      // The conflict stands: the decider is sure of it as far as it knows.
      const { code, message } = asReplicaError(error)
      this.#scope.runtime.log.debug({ requestId: this.#context.requestId, code, error: message }, 'a conflict could not be reviewed')
    }
    return outcomes
  }

  /** Whether the decider's conflict may come from what it has not seen. */
  async #lags(decider: Peer, edit: DocumentEdit): Promise<boolean> {
    if (edit.parent !== null) {
      const [diff] = await decider.replica.diffRevisions([{ id: edit.id, revisions: [edit.parent] }], this.#review)
      return diff !== undefined && diff.missing.length > 0
    }
    if (edit.deleted) return false
    const other = this.#scope.access.readers(this.#place).find(peer => peer.node !== decider.node)
    const [winner] = other === undefined ? [] : await this.#leavesOn(other, edit.id)
    return winner?.deleted === true
  }

  async #leavesOn(peer: Peer, id: string): Promise<readonly Leaf[]> {
    try {
      return (await peer.replica.openDocument({ id, body: false, tree: false }, this.#review))?.leaves ?? []
    } catch (error) {
      if (asReplicaError(error).code === 'timeout') this.#scope.readHealth.silent(peer.node)
      throw error
    }
  }

  /** Brings the decider up to date; returns the documents of which it learned something. */
  async #converge(decider: Peer, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const learned = await mapBounded(ids, this.#scope.options.repairsRunningMax, id =>
      convergeDocument(this.#scope, this.#db, this.#place, id, this.#context.requestId, peer => peer.node === decider.node))
    return new Set(ids.filter((_, i) => learned[i]! > 0))
  }

  /** Turns a conflict into success where the decider has the very revision that the edit makes. */
  async #recognizeOwn(decider: Peer, outcomes: EditOutcome[]): Promise<void> {
    for (const [index, edit] of this.#edits.entries()) {
      if (outcomes[index]!.kind !== 'conflict') continue
      const own = `${edit.parent === null ? 1 : parseRevision(edit.parent).generation + 1}-${edit.revisionHash}`
      const snapshot = await decider.replica.openDocument({ id: edit.id, body: false, tree: true }, this.#review)
      for (const branch of snapshot?.tree ?? []) {
        const at = branchRevisions(branch).indexOf(own)
        if (at < 0) continue
        outcomes[index] = { kind: 'updated', path: { start: branch.path.start - at, ids: branch.path.ids.slice(at) } }
        break
      }
    }
  }
}
