import { newestPosition, ReplicaError, shardKey } from '@sectional/core'
import type { ChangeRow, ReplicaCheckpoint, ShardId } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { Peer } from './replica-access.ts'
import { asReplicaError } from './replica-failures.ts'
import { ReplicaPolls } from './replica-polls.ts'

/** One of the two functions is called, once. */
export interface ChangeSubscriber {
  /** The replica's sequence is now `sequence`, which is greater than what the subscriber has seen. */
  changed(sequence: number): void
  failed(error: ReplicaError): void
}

/** The wait of subscribers on one replica. */
export interface ChangeWatch { remove(subscriber: ChangeSubscriber): void }

export interface TailRequest {
  readonly history: string
  readonly since: number
  /** The rows must include every change up to this sequence. */
  readonly target: number
  readonly body: boolean
}

/** The first rows after a position. */
export interface Tail {
  readonly rows: readonly ChangeRow[]
  /** True when there were no more rows after them. */
  readonly complete: boolean
}

type WatchOptions = Pick<CoordinatorOptions,
  'watchTimeoutMs' | 'watchesMax' | 'pollIntervalMs' | 'pollRoundMs' | 'pollsPerRound' | 'readTimeoutMs'
  | 'scanPageTimeoutMs' | 'tailRows' | 'tailBytes'>

/**
 * The waits for changes on this node. One call waits on each replica for all feeds that read it, and feeds that are
 * woken at the same position read the new rows together, once. When the link to a replica has no room for another
 * waiting call, the replica is polled at intervals instead.
 */
export class ChangeWatches {
  readonly #options: WatchOptions
  readonly #polls: ReplicaPolls
  readonly #watchers = new Map<string, Watcher>()
  readonly #tails = new Map<string, Promise<Tail>>()
  #stopped = false

  constructor(clock: Clock, options: WatchOptions) {
    this.#options = options
    this.#polls = new ReplicaPolls(clock, options)
  }

  /** Number of replicas that are being waited on. */
  get size(): number { return this.#watchers.size }

  /** True when no further replica may be waited on. */
  get full(): boolean { return this.#watchers.size >= this.#options.watchesMax }

  /**
   * Waits for changes of a replica after `seen`. The subscriber is never called before this returns, and removing it
   * ends the wait. It fails with `overloaded` when `watchesMax` replicas are being waited on already.
   */
  subscribe(peer: Peer, shard: ShardId, seen: ReplicaCheckpoint, subscriber: ChangeSubscriber): ChangeWatch {
    const key = `${replicaKey(peer, shard)} ${seen.history}`
    const watcher = this.#watchers.get(key) ?? this.#watch(key, peer, seen)
    watcher.add(subscriber, seen.sequence)
    return watcher
  }

  #watch(key: string, peer: Peer, seen: ReplicaCheckpoint): Watcher {
    const refused = this.full
    const watcher: Watcher = new Watcher(peer, seen, this.#options, this.#polls, () => {
      if (this.#watchers.get(key) === watcher) this.#watchers.delete(key)
    })
    if (refused) watcher.refuse(tooManyWatches(this.#options.watchesMax))
    else this.#watchers.set(key, watcher)
    if (this.#stopped) watcher.stop()
    return watcher
  }

  /** Reads the first rows after `since`: at most `tailRows`, and about `tailBytes`. */
  tail(peer: Peer, shard: ShardId, { history, since, target, body }: TailRequest): Promise<Tail> {
    // The target is part of the key, because a read for an earlier target may have begun too early.
    const key = `${replicaKey(peer, shard)} ${history} ${since} ${target} ${body}`
    return shared(this.#tails, key, () => this.#read(peer, { history, since, body }))
  }

  async #read(peer: Peer, request: Pick<TailRequest, 'history' | 'since' | 'body'>): Promise<Tail> {
    const { tailRows, tailBytes, scanPageTimeoutMs } = this.#options
    const rows: ChangeRow[] = []
    let bytes = 0
    const scan = { ...request, descending: false, locals: false, limit: tailRows }
    for await (const page of peer.replica.scanChanges(scan, { timeoutMs: scanPageTimeoutMs })) {
      rows.push(...page)
      for (const row of page) bytes += row.body?.length ?? 0
      if (bytes >= tailBytes) return { rows, complete: false }
    }
    return { rows, complete: rows.length < tailRows }
  }

  /** Ends all waits. Every subscriber fails, now and later. */
  stop(): void {
    this.#stopped = true
    for (const watcher of [...this.#watchers.values()]) watcher.stop()
    this.#polls.stop()
  }
}

/** Waits on one history of one replica as long as there are subscribers. */
class Watcher implements ChangeWatch {
  readonly #peer: Peer
  readonly #options: WatchOptions
  readonly #polls: ReplicaPolls
  readonly #onEnd: () => void
  readonly #controller = new AbortController()
  /** Maps each subscriber to the sequence that it has seen. */
  readonly #subscribers = new Map<ChangeSubscriber, number>()
  #reached: ReplicaCheckpoint
  #refusal: ReplicaError | undefined

  constructor(peer: Peer, seen: ReplicaCheckpoint, options: WatchOptions, polls: ReplicaPolls, onEnd: () => void) {
    this.#peer = peer
    this.#reached = seen
    this.#options = options
    this.#polls = polls
    this.#onEnd = onEnd
    queueMicrotask(() => { void this.#run() })
  }

  add(subscriber: ChangeSubscriber, after: number): void {
    const { sequence } = this.#reached
    if (after < sequence) {
      queueMicrotask(() => { if (this.#subscribers.delete(subscriber)) subscriber.changed(sequence) })
    }
    this.#subscribers.set(subscriber, after)
  }

  remove(subscriber: ChangeSubscriber): void {
    if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0) this.stop()
  }

  stop(): void {
    this.#onEnd()
    this.#controller.abort()
  }

  /** Ends the watcher. Every subscriber fails with this error. */
  refuse(refusal: ReplicaError): void {
    this.#refusal = refusal
    this.stop()
  }

  /**
   * Runs until a change has woken all subscribers, or the wait fails. A subscriber that wants the next change
   * subscribes again. Never rejects.
   */
  async #run(): Promise<void> {
    const { signal } = this.#controller
    let failure = this.#refusal ?? new ReplicaError('closed', 'no caller waits for changes any more')
    while (!signal.aborted && this.#subscribers.size > 0) {
      try {
        const reached = await this.#next(signal)
        if (reached.history !== this.#reached.history) {
          failure = new ReplicaError('not_hosted', `the replica on ${this.#peer.node} has begun a new history`)
          break
        }
        this.#reached = reached
        this.#wake(reached.sequence)
      } catch (error) {
        failure = asReplicaError(error)
        if (failure.code !== 'timeout' && failure.code !== 'overloaded') break
      }
    }
    this.#onEnd()
    const left = [...this.#subscribers.keys()]
    this.#subscribers.clear()
    for (const subscriber of left) subscriber.failed(failure)
  }

  /**
   * Returns the replica's checkpoint when it has changed, or after a polling interval when no call may wait there.
   * @throws ReplicaError
   */
  async #next(signal: AbortSignal): Promise<ReplicaCheckpoint> {
    const { replica } = this.#peer
    const { watchTimeoutMs, readTimeoutMs } = this.#options
    try {
      return await replica.waitForChange(this.#reached, { timeoutMs: watchTimeoutMs, signal })
    } catch (error) {
      if (asReplicaError(error).code !== 'overloaded') throw error
    }
    await this.#polls.turn(signal)
    return await newestPosition(replica, { timeoutMs: readTimeoutMs, signal })
  }

  #wake(sequence: number): void {
    for (const [subscriber, after] of this.#subscribers) {
      if (sequence <= after) continue
      this.#subscribers.delete(subscriber)
      subscriber.changed(sequence)
    }
  }
}

function tooManyWatches(watchesMax: number): ReplicaError {
  return new ReplicaError(
    'overloaded', `changes feeds of this node wait on ${watchesMax} replicas, which is the limit`,
  )
}

function replicaKey(peer: Peer, shard: ShardId): string {
  return `${peer.node} ${shardKey(shard)}`
}

/** Returns the running work for the key, or starts it. */
function shared<T>(running: Map<string, Promise<T>>, key: string, begin: () => Promise<T>): Promise<T> {
  const known = running.get(key)
  if (known !== undefined) return known
  const work = begin().finally(() => running.delete(key))
  running.set(key, work)
  return work
}
