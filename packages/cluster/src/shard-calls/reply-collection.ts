import type { ReplicaError } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import { readersToAsk, readQuorum, readVerdict, withAnswer, withFailure } from '../quorum/read-quorum.ts'
import type { ReadQuorum } from '../quorum/read-quorum.ts'
import { readersConfirmedFirst } from './confirmed-readers.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

export interface Reply<T> { readonly peer: Peer; readonly value: T }

export interface CollectedReplies<T> {
  /** In order of arrival; at least one. */
  readonly replies: readonly Reply<T>[]
  /** False when every replica was asked and fewer than r answered. */
  readonly met: boolean
}

/**
 * Asks as many replicas as r requires, another one for each that fails, and another one when some are silent for
 * `readHedgeMs`. Resolves with r answers, or with fewer when no replica is left to ask.
 *
 * @param ask asks one replica; `first` is true for the preferred reader, which sends the body
 * @throws ApiError when no replica answers
 */
export function collectReplies<T>(
  scope: CoordinatorScope, place: ShardPlace, r: number | undefined, ask: (peer: Peer, first: boolean) => Promise<T>,
): Promise<CollectedReplies<T>> {
  const readers = readersConfirmedFirst(scope, place)
  return new ReplyCollection(scope, readers, readQuorum(place.activeCount, readers.length, r), ask).run()
}

/** Returns one answer, from this node's replica if it has one. */
export async function askOne<T>(
  scope: CoordinatorScope, place: ShardPlace, ask: (peer: Peer) => Promise<T>,
): Promise<T> {
  const local = scope.access.loneLocal(place)
  if (local === undefined) return (await collectReplies(scope, place, 1, ask)).replies[0]!.value
  try {
    return await ask({ node: scope.access.node, local: true, active: true, replica: local })
  } catch (error) {
    throw shardFailure([asReplicaError(error)])
  }
}

class ReplyCollection<T> {
  readonly #scope: CoordinatorScope
  readonly #readers: readonly Peer[]
  readonly #ask: (peer: Peer, first: boolean) => Promise<T>
  readonly #replies: Reply<T>[] = []
  readonly #errors: ReplicaError[] = []
  /** Replicas that were asked and have not answered. */
  readonly #hopeful = new Set<Peer>()
  /** Replicas that were silent for too long. They may still answer, but others are asked in their place. */
  readonly #late = new Set<Peer>()
  #quorum: ReadQuorum
  #asked = 0
  #timer: Timer | undefined
  #done = false
  #resolve!: (collected: CollectedReplies<T>) => void
  #reject!: (error: unknown) => void

  constructor(
    scope: CoordinatorScope, readers: readonly Peer[], quorum: ReadQuorum,
    ask: (peer: Peer, first: boolean) => Promise<T>,
  ) {
    this.#scope = scope
    this.#readers = readers
    this.#quorum = quorum
    this.#ask = ask
  }

  run(): Promise<CollectedReplies<T>> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#advance()
    })
  }

  #advance(): void {
    const verdict = readVerdict(this.#quorum)
    if (verdict === 'failed') return this.#finish(() => this.#reject(shardFailure(this.#errors)))
    if (verdict !== 'waiting') {
      return this.#finish(() => this.#resolve({ replies: this.#replies, met: verdict === 'met' }))
    }
    for (let more = readersToAsk(this.#quorum, this.#asked, this.#hopeful.size); more > 0; more--) this.#askNext()
    this.#watch()
  }

  #askNext(): void {
    const peer = this.#readers[this.#asked]!
    const first = this.#asked === 0
    this.#asked++
    this.#hopeful.add(peer)
    this.#ask(peer, first).then(value => {
      this.#scope.readHealth.answered(peer.node)
      this.#heard(peer)
      if (this.#done) return
      this.#replies.push({ peer, value })
      this.#quorum = withAnswer(this.#quorum)
      this.#advance()
    }, (error: unknown) => {
      const failure = asReplicaError(error)
      if (failure.code === 'timeout') this.#scope.readHealth.silent(peer.node)
      this.#heard(peer)
      if (this.#done) return
      this.#errors.push(failure)
      this.#quorum = withFailure(this.#quorum)
      this.#advance()
    })
  }

  #heard(peer: Peer): void {
    if (!this.#hopeful.delete(peer)) this.#late.delete(peer)
  }

  /** Starts a timer, but only while a remote reader is awaited and another one could be asked. */
  #watch(): void {
    if (this.#timer !== undefined || this.#asked === this.#readers.length) return
    let remote = false
    for (const peer of this.#hopeful) remote ||= !peer.local
    if (!remote) return
    const { clock } = this.#scope.runtime
    // The immediate lets answers that arrived during a long turn of the event loop be handled first.
    this.#timer = clock.setTimer(this.#scope.options.readHedgeMs, () => clock.setImmediate(() => this.#hedge()))
  }

  #hedge(): void {
    this.#timer = undefined
    if (this.#done) return
    for (const peer of this.#hopeful) {
      if (!peer.local) this.#scope.readHealth.silent(peer.node)
      this.#late.add(peer)
    }
    this.#hopeful.clear()
    this.#advance()
  }

  #finish(settle: () => void): void {
    this.#done = true
    this.#timer?.cancel()
    settle()
  }
}
