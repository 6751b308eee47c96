/**
 * The decision about edits. One replica, the decider, decides for each edit whether it conflicts and which revision it
 * makes; the other replicas receive the decided revisions.
 *
 * Each edit has an attempt number that is the same in every call for the edit (`DocumentEdit.attempt`). A replica that
 * is asked again therefore recognises the revision that it made for this attempt. When the first replica does not
 * answer, the next one can be asked: two replicas that decide the same attempt agree, unless another edit comes in
 * between.
 *
 * A decider may also fail after it has reported a conflict, and before the conflict is reviewed. It has then written
 * nothing, and the next replica decides.
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
import { mapBounded, ReplicaError } from '@sectional/core'
import type { CallContext, DocumentEdit, Leaf, UpdateDocumentsReply } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { decision, decisionStep, withRefusal } from '../quorum/decision.ts'
import { majority } from '../quorum/majority.ts'
import { provideBlobs } from '../attachments/blob-transfer.ts'
import { namedBlobs } from '../replicas/blob-copy.ts'
import { reviewConflicts } from './conflict-review.ts'
import type { DecidedOutcome, ReviewedOutcome, ReviewedReply } from './conflict-review.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext, WriteOptions } from '../contracts/coordinator.ts'
import { convergeDocument } from './document-convergence.ts'
import { partitionLimit } from './partition-limit.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { SilenceWatch } from '../shard-calls/silence-watch.ts'

/** The edits that one replica has decided. */
export interface DecidedEdits {
  /** The replica that has the decided revisions on its disk. */
  readonly decider: Peer
  /** The positions of these edits among those that were to be decided. */
  readonly places: readonly number[]
  /** One outcome per place. */
  readonly outcomes: readonly DecidedOutcome[]
  /**
   * False when the decider may have missed acknowledged writes: it had to be brought up to date, and too few replicas
   * answered. Another decider may have made the same revisions before.
   */
  readonly current: boolean
}

/**
 * Asks the first replica that is able to decide the edits. When it fails or is silent, asks the next one. Several
 * replicas decide only when one of them failed before its conflicts were reviewed.
 *
 * @param onDecided receives the edits of each decider, before the next one is asked for those that are left. Begin to
 *   distribute them at once: later edits of the same documents are then decided after them
 * @throws ApiError when no replica decides. `onDecided` was then not called
 */
export function requestDecision(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[], options: WriteOptions,
  context: OperationContext, onDecided: (decided: DecidedEdits) => void,
): Promise<void> {
  return new EditDecision(scope, db, place, edits, options, context, onDecided).run()
}

/** How often the tombstone of an edit may be named: other clients can revive and delete the document in between. */
const namingsMax = 3

type Answer =
  | { readonly kind: 'decided'; readonly decider: Peer; readonly outcomes: readonly ReviewedOutcome[] }
  | { readonly kind: 'declined' | 'failed'; readonly decider: Peer }

class EditDecision {
  readonly #scope: CoordinatorScope
  readonly #db: DatabaseRecord
  readonly #place: ShardPlace
  /** The edits to decide, and their positions among all edits. */
  #edits: readonly DocumentEdit[]
  #places: readonly number[]
  readonly #onDecided: (decided: DecidedEdits) => void
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
  /** The last decider that failed before all of its conflicts were reviewed. */
  #failedReviewer: Peer | undefined

  constructor(
    scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, edits: readonly DocumentEdit[],
    options: WriteOptions, context: OperationContext, onDecided: (decided: DecidedEdits) => void,
  ) {
    this.#options = options
    this.#onDecided = onDecided
    this.#scope = scope
    this.#db = db
    this.#place = place
    this.#edits = edits
    this.#places = [...edits.keys()]
    this.#context = context
    this.#deciders = scope.access.deciders(place)
    this.#review = writeCall(scope.options.reviewTimeoutMs, context)
  }

  async run(): Promise<void> {
    const [first] = this.#deciders
    const usual = first !== undefined && this.#scope.access.isFirst(this.#place, first)
    let state = decision(this.#deciders.length, usual)
    for (let step = decisionStep(state); step.kind === 'ask'; step = decisionStep(state)) {
      const decider = this.#deciders[step.replica]!
      this.#open.set(decider, this.#attempt(decider, step.refresh))
      const answer = await this.#answerOf(decider)
      if (answer?.kind === 'decided') {
        this.#scope.metrics.decision(!step.refresh ? 'first' : usual && step.replica === 0 ? 'catching_up' : 'stand_in')
        await this.#finish(answer.decider, answer.outcomes)
        if (this.#edits.length === 0) return
      }
      state = withRefusal(state, answer?.kind === 'declined' ? 'declined' : 'failed')
    }
    // No other replica is left to ask. A silent one may still answer within its time limit.
    while (this.#open.size > 0 && this.#edits.length > 0) {
      const answer = await this.#nextAnswer()
      if (answer.kind === 'decided') await this.#finish(answer.decider, answer.outcomes)
    }
    if (this.#edits.length === 0) return
    if (this.#failedReviewer === undefined) throw shardFailure(this.#errors)
    this.#settle(this.#failedReviewer, this.#edits.map(() => ({ kind: 'unknown' })))
  }

  async #attempt(decider: Peer, refresh: boolean): Promise<Answer> {
    const { decisionHealth, readHealth } = this.#scope
    let sent = false
    try {
      if (refresh) await this.#refresh(decider)
      if (this.#failedReviewer !== undefined && this.#outdated.has(decider)) {
        // The one that failed may know better, because it has reported conflicts.
        throw new ReplicaError('unreachable', `${decider.node} cannot be compared with a majority of the replicas`)
      }
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

  /** Reviews the conflicts of a decision. The edits that another replica can decide are left in `#edits`. */
  async #finish(decider: Peer, decided: readonly ReviewedOutcome[]): Promise<void> {
    const { scope, db, place, edits } = { scope: this.#scope, db: this.#db, place: this.#place, edits: this.#edits }
    for (const call of this.#open.values()) scope.background.track(call.then(() => {}))
    const examined = place.activeCount > 1 && decided.some(({ kind }) => kind === 'conflict')
    const outcomes: readonly ReviewedOutcome[] = !examined ? decided : await reviewConflicts(
      { scope, db, place, edits, decider, call: this.#review, decide: some => this.#ask(decider, some, true) }, decided)
    if (!this.#unknownOutcome && this.#open.size === 0) return this.#settle(decider, outcomes)
    const known = outcomes.map(outcome => outcome.kind === 'updated' ? outcome : { kind: 'unknown' } as const)
    this.#settle(decider, known)
  }

  /** Reports the outcomes of `#edits`, and keeps those that are undecided for the next decider. */
  #settle(decider: Peer, reviewed: readonly ReviewedOutcome[]): void {
    const places: number[] = []
    const outcomes: DecidedOutcome[] = []
    const left: number[] = []
    reviewed.forEach((outcome, i) => {
      if (outcome.kind === 'undecided') return void left.push(i)
      places.push(this.#places[i]!)
      outcomes.push(outcome)
    })
    if (places.length > 0) this.#onDecided({ decider, places, outcomes, current: !this.#outdated.has(decider) })
    this.#edits = left.map(i => this.#edits[i]!)
    this.#places = left.map(i => this.#places[i]!)
    if (left.length === 0) return
    this.#failedReviewer = decider
    // No replica has made these edits, so another tombstone may be named to the next decider.
    this.#decidedBy = undefined
  }

  /** Asks a replica to decide. Edits that only need the name of their tombstone are decided again with it. */
  async #ask(decider: Peer, edits: readonly DocumentEdit[], force: boolean): Promise<ReviewedReply> {
    const reply = await this.#call(decider, edits, force)
    if (reply.kind === 'declined') return reply
    const outcomes: ReviewedOutcome[] = [...reply.outcomes]
    for (let namings = 1; namings <= namingsMax; namings++) {
      const named = edits.flatMap((edit, index) => this.#nameTombstone(decider, edit, outcomes[index]!) ? [index] : [])
      if (named.length === 0) break
      try {
        const again = await this.#call(decider, named.map(index => edits[index]!), true)
        if (again.kind === 'decided') named.forEach((index, i) => { outcomes[index] = again.outcomes[i]! })
      } catch (error) {
        // The edits that were made keep their outcomes: another decider may report a conflict for them.
        const isMade = outcomes.some(({ kind }) => kind === 'updated')
        if (!isMade || !asReplicaError(error).nothingDone) throw error
        for (const index of named) outcomes[index] = { kind: 'undecided' }
      }
    }
    return { kind: 'decided', outcomes }
  }

  /** @returns whether the outcome reports a tombstone that the edit may extend */
  #nameTombstone(decider: Peer, edit: DocumentEdit, outcome: ReviewedOutcome): boolean {
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
