/**
 * The decision about edits. One replica, the decider, decides for each edit whether it conflicts and which revision it
 * makes; the other replicas receive the decided revisions.
 *
 * Each edit has an attempt number that is the same in every call for the edit (`DocumentEdit.attempt`). A replica that
 * is asked again therefore recognises the revision that it made for this attempt. When the first replica does not
 * answer, the next one can be asked: two replicas that decide the same attempt agree, unless another edit comes in
 * between.
 *
 * A replica that is silent may have decided, or may decide later. A conflict that the next replica reports is then not
 * final: the edit may still take effect as a conflict branch, and that branch may even win. The outcome of such an edit
 * is `unknown`, which the client receives as 503.
 *
 * An edit without a parent that finds a deleted document would restore it each time that it is decided, also after
 * another client has deleted the document again. A replica therefore only reports the tombstone at first. The
 * coordinator names it in a second call, and in all later ones (`DocumentEdit.revives`). It names none while another
 * replica may have made the edit before the document was deleted; the outcome is then `unknown`, too.
 *
 * The first replica of the shard map decides nearly all edits and therefore has nearly all revisions. A stand-in may
 * lack some, and so may a replica that is catching up. Before such a replica decides, it receives the leaves that the
 * other replicas have of the documents in question. A conflict is answered only after a review (conflict-review.ts).
 */
import { mapBounded } from '@sectional/core'
import type { CallContext, DocumentEdit, EditOutcome, Leaf, ReplicaError, UpdateDocumentsReply } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { decision, decisionStep, withRefusal } from '../quorum/decision.ts'
import { majority } from '../quorum/majority.ts'
import { provideBlobs } from '../attachments/blob-transfer.ts'
import { namedBlobs } from '../replicas/blob-copy.ts'
import { reviewConflicts } from './conflict-review.ts'
import type { DecidedOutcome } from './conflict-review.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext, WriteOptions } from '../contracts/coordinator.ts'
import { convergeDocument } from './document-convergence.ts'
import { partitionLimit } from './partition-limit.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { SilenceWatch } from '../shard-calls/silence-watch.ts'

export interface DecidedEdits {
  /** The replica that has the decided revisions on its disk. */
  readonly decider: Peer
  /** One outcome per edit, in order. */
  readonly outcomes: readonly DecidedOutcome[]
  /**
   * False when the decider may have missed acknowledged writes: it had to be brought up to date, and too few replicas
   * answered. Another decider may have made the same revisions before.
   */
  readonly current: boolean
}

/**
 * Asks the first replica that is able to decide the edits. When it fails or is silent, asks the next one.
 *
 * @throws ApiError when no replica decides
 */
export function requestDecision(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], options: WriteOptions,
  context: OperationContext,
): Promise<DecidedEdits> {
  return new EditDecision(scope, db, place, edits, options, context).run()
}

/** How often the tombstone of an edit may be named: other clients can revive and delete the document in between. */
const namingsMax = 3

type Answer =
  | { readonly kind: 'decided'; readonly decider: Peer; readonly outcomes: readonly EditOutcome[] }
  | { readonly kind: 'declined' | 'failed'; readonly decider: Peer }

class EditDecision {
  readonly #scope: CoordinatorScope
  readonly #db: DatabaseRecord
  readonly #place: ShardPlace
  readonly #edits: readonly DocumentEdit[]
  readonly #options: WriteOptions
  readonly #context: OperationContext
  readonly #deciders: readonly Peer[]
  readonly #review: CallContext
  readonly #errors: ReplicaError[] = []
  /** The replicas that had to be brought up to date, and were not compared with a majority. */
  readonly #outdated = new Set<Peer>()
  /** The calls that have not been answered. Their promises never reject. */
  readonly #open = new Map<Peer, Promise<Answer>>()
  /** The tombstones that edits without a parent may extend. */
  readonly #tombstones = new Map<DocumentEdit, string>()
  /** True after a call failed that may have been carried out or may still be carried out. */
  #unknownOutcome = false
  /** The replica whose decision counts. */
  #decidedBy: Peer | undefined

  constructor(
    scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[],
    options: WriteOptions, context: OperationContext,
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
    const [first] = this.#deciders
    const usual = first !== undefined && this.#scope.access.isFirst(this.#place, first)
    let state = decision(this.#deciders.length, usual)
    for (let step = decisionStep(state); step.kind === 'ask'; step = decisionStep(state)) {
      const decider = this.#deciders[step.replica]!
      this.#open.set(decider, this.#attempt(decider, step.refresh))
      const answer = await this.#answerOf(decider)
      if (answer?.kind === 'decided') {
        this.#scope.metrics.decision(!step.refresh ? 'first' : usual && step.replica === 0 ? 'catching_up' : 'stand_in')
        return this.#finish(answer.decider, answer.outcomes)
      }
      state = withRefusal(state, answer?.kind ?? 'failed')
    }
    // No other replica is left to ask. A silent one may still answer within its time limit.
    while (this.#open.size > 0) {
      const answer = await this.#nextAnswer()
      if (answer.kind === 'decided') return this.#finish(answer.decider, answer.outcomes)
    }
    throw shardFailure(this.#errors)
  }

  async #attempt(decider: Peer, refresh: boolean): Promise<Answer> {
    const { decisionHealth, readHealth } = this.#scope
    let sent = false
    try {
      if (refresh) await this.#refresh(decider)
      sent = true
      const reply = await this.#ask(decider, this.#edits, refresh)
      decisionHealth.answered(decider.node)
      return { ...reply, decider }
    } catch (error) {
      const failure = asReplicaError(error)
      this.#errors.push(failure)
      if (failure.code === 'timeout') for (const health of [decisionHealth, readHealth]) health.silent(decider.node)
      this.#unknownOutcome ||= sent && !failure.nothingDone
      return { kind: 'failed', decider }
    }
  }

  /**
   * Returns the decider's answer, or the decision of a replica that was asked before it; undefined when the decider is
   * silent.
   */
  async #answerOf(decider: Peer): Promise<Answer | undefined> {
    if (decider.local && this.#open.size === 1) return this.#onlyAnswer(decider)
    let watch: SilenceWatch | undefined
    const silence = new Promise<undefined>(resolve => {
      watch = new SilenceWatch(this.#scope, [decider], () => resolve(undefined))
    })
    try {
      for (;;) {
        const answer = await this.#nextAnswer(silence)
        if (answer === undefined || answer.kind === 'decided' || answer.decider === decider) return answer
      }
    } finally {
      watch?.cancel()
    }
  }

  /** The usual case of a write: only the local replica was asked, so that there is no race. */
  async #onlyAnswer(decider: Peer): Promise<Answer> {
    const answer = await this.#open.get(decider)!
    this.#open.delete(decider)
    return answer
  }

  #nextAnswer(): Promise<Answer>
  #nextAnswer(silence: Promise<undefined>): Promise<Answer | undefined>
  async #nextAnswer(silence?: Promise<undefined>): Promise<Answer | undefined> {
    const answer = await Promise.race(silence === undefined ? this.#open.values() : [...this.#open.values(), silence])
    if (answer !== undefined) this.#open.delete(answer.decider)
    if (answer?.kind === 'decided') this.#decidedBy ??= answer.decider
    return answer
  }

  async #finish(decider: Peer, decided: readonly EditOutcome[]): Promise<DecidedEdits> {
    const { scope, db, place, edits } = { scope: this.#scope, db: this.#db, place: this.#place, edits: this.#edits }
    for (const call of this.#open.values()) scope.background.track(call.then(() => {}))
    const examined = place.activeCount > 1 && decided.some(({ kind }) => kind === 'conflict')
    const outcomes: readonly DecidedOutcome[] = !examined ? decided : await reviewConflicts(
      { scope, db, place, edits, decider, call: this.#review, decide: some => this.#ask(decider, some, true) }, decided)
    const current = !this.#outdated.has(decider)
    if (!this.#unknownOutcome && this.#open.size === 0) return { decider, outcomes, current }
    const known = outcomes.map(outcome => outcome.kind === 'updated' ? outcome : { kind: 'unknown' } as const)
    return { decider, outcomes: known, current }
  }

  /** Asks a replica to decide. Edits that only need the name of their tombstone are decided again with it. */
  async #ask(decider: Peer, edits: readonly DocumentEdit[], force: boolean): Promise<UpdateDocumentsReply> {
    const reply = await this.#call(decider, edits, force)
    if (reply.kind === 'declined') return reply
    const outcomes = [...reply.outcomes]
    for (let namings = 1; namings <= namingsMax; namings++) {
      const named = edits.flatMap((edit, index) => this.#nameTombstone(decider, edit, outcomes[index]!) ? [index] : [])
      if (named.length === 0) break
      const again = await this.#call(decider, named.map(index => edits[index]!), true)
      if (again.kind === 'decided') named.forEach((index, i) => { outcomes[index] = again.outcomes[i]! })
    }
    return { kind: 'decided', outcomes }
  }

  /** @returns whether the outcome reports a tombstone that the edit may extend */
  #nameTombstone(decider: Peer, edit: DocumentEdit, outcome: EditOutcome): boolean {
    if (outcome.kind !== 'tombstone') return false
    const others = [...this.#open.keys(), this.#decidedBy].filter(peer => peer !== undefined && peer !== decider)
    const deciding = this.#unknownOutcome || others.length > 0
    if (deciding && this.#tombstones.get(edit) !== outcome.revision) return false
    this.#tombstones.set(edit, outcome.revision)
    return true
  }

  async #call(decider: Peer, asked: readonly DocumentEdit[], force: boolean): Promise<UpdateDocumentsReply> {
    const { decisionTimeoutMs } = this.#scope.options
    const edits = asked.map(edit => edit.parent !== null || edit.attempt === undefined
      ? edit : { ...edit, revives: this.#tombstones.get(edit) ?? null })
    const request = {
      edits, revsLimit: this.#db.revsLimit, ...partitionLimit(this.#db, this.#options), ...(force && { force }),
    }
    const call = writeCall(decisionTimeoutMs, this.#context)
    try {
      return await decider.replica.updateDocuments(request, call)
    } catch (error) {
      if (asReplicaError(error).code !== 'missing_blob') throw error
      await provideBlobs(this.#scope, decider, namedBlobs(edits), this.#place, call.requestId ?? '')
      return await decider.replica.updateDocuments(request, call)
    }
  }

  /**
   * Stores on the decider the leaves of the documents that other replicas have and it lacks. Replicas that do not
   * answer in time are left out. Those that were silent before are asked only where a majority needs them.
   */
  async #refresh(decider: Peer): Promise<void> {
    const { access, readHealth } = this.#scope
    const needed = majority(this.#place.activeCount) - 1
    const others = access.readers(this.#place).filter(peer => peer.node !== decider.node)
    if (others.length < needed) this.#outdated.add(decider)
    if (others.length === 0) return
    const trusted = others.filter(peer => !readHealth.isSuspect(peer.node))
    const asked = trusted.length >= needed ? trusted : others
    const ids = [...new Set(this.#edits.map(edit => edit.id))]
    const known = await mapBounded(ids, this.#scope.options.requestCallsMax, async id => {
      const answers = await Promise.allSettled(asked.map(peer => this.#leavesOn(peer, id)))
      const leaves = answers.flatMap(answer => answer.status === 'fulfilled' ? [answer.value] : [])
      if (leaves.length < needed) this.#outdated.add(decider)
      return { id, revisions: [...new Set(leaves.flat().map(leaf => leaf.revision))] }
    })
    const diffs = await decider.replica.diffRevisions(known.filter(each => each.revisions.length > 0), this.#review)
    const lagging = diffs.filter(diff => diff.missing.length > 0).map(diff => diff.id)
    await mapBounded(lagging, this.#scope.options.repairsRunningMax, id =>
      convergeDocument(
        this.#scope, this.#db, this.#place, id, this.#context.requestId, peer => peer.node === decider.node,
        this.#review,
      ))
  }

  async #leavesOn(peer: Peer, id: string): Promise<readonly Leaf[]> {
    try {
      const opened = await peer.replica.openDocument({ id, body: false, tree: false }, this.#review)
      this.#scope.readHealth.answered(peer.node)
      return opened?.leaves ?? []
    } catch (error) {
      if (asReplicaError(error).code === 'timeout') this.#scope.readHealth.silent(peer.node)
      throw error
    }
  }
}
