import { ApiError, ReplicaError, SinceVector, mapBounded } from '@sectional/core'
import type { CallContext, ChangeRow } from '@sectional/core'
import { attachReplica } from './changes-attach.ts'
import type { FirstPlace } from './changes-attach.ts'
import { ShardPosition } from '../replicas/changes-position.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ChangesEvent, ChangesFeed, ChangesOptions, OperationContext } from '../contracts/coordinator.ts'
import { FeedShard } from './feed-shard.ts'
import type { FeedShardOwner } from './feed-shard.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { completeStanding } from '../shard-calls/replica-reports.ts'
import { asReplicaError, feedsOverloaded } from '../replicas/replica-failures.ts'
import type { Standing } from '../replicas/replica-standings.ts'

type RowsEvent = ChangesEvent & { readonly kind: 'rows' }

/**
 * Number of shards that one feed reads at the same time. Each holds a page of rows until the reader has processed it.
 * With two, one shard is read while rows of the other are written. With four, rows with documents took a fifth more CPU
 * time, because the waiting pages do not stay in the processor's caches.
 */
const shardsReadMax = 2

interface Offer { readonly event: RowsEvent; readonly release: (goOn: boolean) => void }

/**
 * A changes feed over all shards of a database. Each shard is read by a run of its own, which hands over a page and
 * waits until the reader has processed it. A run ends when its shard has no more rows, and a change starts the next
 * run. An idle feed therefore holds only its positions and subscriptions.
 */
export class ShardsFeed implements ChangesFeed, FeedShardOwner {
  readonly shards: readonly FeedShard[]
  readonly #scope: CoordinatorScope
  readonly #options: ChangesOptions
  readonly #follow: boolean
  readonly #context: OperationContext
  /** Present while calls are running. */
  #controller: AbortController | undefined
  readonly #offers: Offer[] = []
  readonly #onAbort = (): void => { void this.close() }
  #current: Offer | undefined
  #started = false
  #ended = false
  #closed = false
  #announced = false
  #running = 0
  /** Shards that wait until another shard has been read. */
  readonly #queued: FeedShard[] = []
  #failure: { readonly error: unknown } | undefined
  #wakeReader: (() => void) | undefined
  #onIdle: (() => void) | undefined
  #vector: SinceVector | undefined
  /** Shards whose positions are not in the vector yet. */
  readonly #moved: FeedShard[] = []

  constructor(
    scope: CoordinatorScope, places: readonly ShardPlace[], options: ChangesOptions, context: OperationContext,
  ) {
    this.#scope = scope
    this.#options = options
    this.#follow = options.follow && !options.descending
    this.#context = context
    const { since } = options
    const parts = since.kind === 'vector' && !options.descending ? since.parts : []
    this.shards = places.map((place, index) =>
      new FeedShard(this, index, place, new ShardPosition(place.id.range, parts, scope.histories)))
    context.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /**
   * Attaches the shard to a replica, if it is not attached yet.
   * @throws ApiError when no replica of the shard answers
   */
  async attach(shard: FeedShard): Promise<Standing> {
    if (shard.attached !== undefined) return shard.attached
    const { descending, since } = this.#options
    const from: FirstPlace = descending || since.kind === 'now' ? 'end' : since.kind === 'time' ? since : 'start'
    const options = { from, failed: shard.failures ??= new Set() }
    const call = this.#call(this.#scope.options.readTimeoutMs)
    const { standing, sequence, since: place } = await attachReplica(
      this.#scope, shard.place, shard.position, options, call,
    )
    // A descending reader has not read the changes up to this sequence, so its position must not include the `seen` of
    // the replica.
    shard.attached = descending ? { ...standing, source: { ...standing.source, seen: {} } } : standing
    shard.target = sequence
    shard.lostSince = undefined
    if (shard.failures.size === 0) shard.failures = undefined
    this.#reach(shard, place)
    return shard.attached
  }

  async next(): Promise<ChangesEvent | null> {
    const before = this.#current
    this.#current = undefined
    before?.release(true)
    if (!this.#started) {
      this.#started = true
      for (const shard of this.shards) this.#run(shard)
    }
    for (;;) {
      if (this.#ended || this.#closed) return null
      if (this.#failure !== undefined) throw this.#failure.error
      const offer = this.#current = this.#offers.shift()
      if (offer !== undefined) return offer.event
      if (this.#running === 0) {
        if (!this.#follow) return null
        if (!this.#announced && this.shards.every(shard => shard.drained)) {
          this.#announced = true
          // An idle feed needs no token until the next change.
          this.#vector = undefined
          return { kind: 'caught-up' }
        }
      }
      await new Promise<void>(resolve => { this.#wakeReader = resolve })
    }
  }

  take({ place }: RowsEvent, row: ChangeRow): void {
    const shard = this.shards[place]!
    shard.taken++
    this.#reach(shard, row.sequence)
  }

  token(): string {
    if (this.#vector === undefined) {
      this.#vector = new SinceVector(this.shards.length)
      for (const shard of this.shards) this.#move(shard)
    }
    for (let shard = this.#moved.pop(); shard !== undefined; shard = this.#moved.pop()) {
      shard.moved = false
      this.#vector.set(shard.index, shard.position.parts())
    }
    return this.#vector.token()
  }

  async pending(): Promise<number> {
    const counts = await mapBounded(this.shards, this.#scope.options.requestCallsMax, shard => this.#pendingOf(shard))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true
      this.#context.signal.removeEventListener('abort', this.#onAbort)
      this.#controller?.abort()
      this.#queued.length = 0
      for (const shard of this.shards) shard.stopWaiting()
      this.#current?.release(false)
      for (const { release } of this.#offers.splice(0)) release(false)
      this.#wake()
    }
    if (this.#running > 0) await new Promise<void>(resolve => {
      const others = this.#onIdle
      this.#onIdle = () => { others?.(); resolve() }
    })
  }

  #call(timeoutMs: number): CallContext {
    const signal = this.#closed ? AbortSignal.abort() : (this.#controller ??= new AbortController()).signal
    return { timeoutMs, signal, requestId: this.#context.requestId }
  }

  #reach(shard: FeedShard, sequence: number): void {
    shard.position.reach(shard.attached!.source, sequence)
    this.#move(shard)
  }

  #move(shard: FeedShard): void {
    if (shard.moved) return
    shard.moved = true
    this.#moved.push(shard)
  }

  #wake(): void {
    const wake = this.#wakeReader
    this.#wakeReader = undefined
    wake?.()
  }

  /** Reads the shard until it has no more rows, then waits for a change. */
  #run(shard: FeedShard): void {
    if (this.#closed) return
    this.#announced = false
    if (this.#running >= shardsReadMax) {
      this.#queued.push(shard)
      return
    }
    this.#running++
    void this.#readOut(shard)
  }

  async #readOut(shard: FeedShard): Promise<void> {
    try {
      while (!this.#closed && !await this.#attempt(shard)) { /* another replica */ }
    } catch (error) {
      this.#failure ??= { error }
    }
    this.#running--
    const next = this.#queued.shift()
    if (next !== undefined) this.#run(next)
    if (this.#running === 0) {
      this.#controller = undefined
      this.#onIdle?.()
    }
    this.#wake()
  }

  /**
   * Reads the shard from one replica. Returns false when that replica failed and another one should be tried.
   * @throws ApiError when no replica is left
   */
  async #attempt(shard: FeedShard): Promise<boolean> {
    try {
      const attached = await this.#refresh(shard, await this.attach(shard))
      const limited = await this.#read(shard, attached)
      if (this.#closed || limited) return true
      shard.failures = undefined
      this.#drained(shard, attached)
      return true
    } catch (error) {
      if (this.#closed) return true
      if (error instanceof ApiError) return this.#lost(shard, error)
      this.#leave(shard, error)
      // Replicas number their changes differently, so a descending reader cannot continue on another replica.
      if (this.#options.descending && shard.offered > 0) throw error
      return false
    }
  }

  /** A feed that runs for long asks its replica from time to time what it has seen of the other replicas. */
  async #refresh(shard: FeedShard, attached: Standing): Promise<Standing> {
    const { runtime: { clock }, options: { followRefreshMs }, standings } = this.#scope
    if (!this.#follow || clock.monotonic() - attached.at < followRefreshMs) return attached
    const { standing, sequence } = await standings.recent(attached.peer, shard.place)
    if (standing.source.history !== attached.source.history) {
      throw new ReplicaError('not_hosted', `the replica on ${attached.peer.node} has begun a new history`)
    }
    shard.target = Math.max(shard.target, sequence)
    return shard.attached = standing
  }

  /** Hands over all rows. Returns true when the feed's limit was reached; there may be more rows. */
  async #read(shard: FeedShard, { peer, source }: Standing): Promise<boolean> {
    const { descending, body, limit } = this.#options
    const { scanPageTimeoutMs } = this.#scope.options
    if (limit !== null && shard.offered >= limit) return true
    if (!descending && shard.position.sequence >= shard.target) return false
    if (shard.drained) {
      shard.drained = false
      const tail = { history: source.history, since: shard.position.sequence, target: shard.target, body }
      const { rows, complete } = await this.#scope.watches.tail(peer, shard.place.id, tail)
      if (rows.length > 0 && !await this.#offer(shard, rows)) return true
      if (complete) return false
    }
    const left = limit === null ? {} : { limit: limit - shard.offered }
    const since = descending ? 0 : shard.position.sequence
    const scan = { history: source.history, since, descending, body, locals: false, ...left }
    for await (const rows of peer.replica.scanChanges(scan, this.#call(scanPageTimeoutMs))) {
      if (rows.length > 0 && !await this.#offer(shard, rows)) return true
    }
    return limit !== null && shard.offered >= limit
  }

  /** Resolves to true when the reader has processed the rows, and to false when it wants no more. */
  #offer(shard: FeedShard, rows: readonly ChangeRow[]): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false)
    shard.offered += rows.length
    return new Promise(resolve => {
      this.#offers.push({ event: { kind: 'rows', place: shard.index, rows }, release: resolve })
      this.#wake()
    })
  }

  #drained(shard: FeedShard, { peer, source }: Standing): void {
    shard.drained = true
    if (this.#options.descending) return
    this.#reach(shard, Math.max(shard.position.sequence, shard.target))
    if (!this.#follow) return
    const seen = { history: source.history, sequence: shard.position.sequence }
    shard.watch = this.#scope.watches.subscribe(peer, shard.place.id, seen, shard)
  }

  resume(shard: FeedShard, failure?: ReplicaError): void {
    // When this node may wait on no further replica, another replica of the shard would not help.
    if (failure?.code === 'overloaded') return this.#refuse(failure)
    if (failure !== undefined) this.#leave(shard, failure)
    this.#run(shard)
  }

  #refuse(failure: ReplicaError): void {
    this.#failure ??= { error: feedsOverloaded(failure) }
    this.#wake()
  }

  #leave(shard: FeedShard, error: unknown): void {
    const { peer } = shard.attached ?? {}
    shard.attached = undefined
    shard.drained = false
    if (peer === undefined) return
    if (asReplicaError(error).code === 'timeout') this.#scope.readHealth.silent(peer.node)
    ;(shard.failures ??= new Set()).add(peer.node)
  }

  /** No replica answers. A feed that follows waits for one; other feeds fail. */
  #lost(shard: FeedShard, error: ApiError): boolean {
    const { runtime: { clock }, options: { followRetryMs, followPatienceMs } } = this.#scope
    if (!this.#follow) throw error
    shard.lostSince ??= clock.monotonic()
    if (clock.monotonic() - shard.lostSince >= followPatienceMs) throw error
    shard.failures = undefined
    shard.retry = clock.setTimer(followRetryMs, () => {
      shard.retry = undefined
      this.resume(shard)
    })
    return true
  }

  /**
   * When no change came after the shard's position, completes the position to the form that is equal on all nodes,
   * provided that all replicas have every change of each other.
   */
  async #settle(shard: FeedShard): Promise<0> {
    const { attached, position } = shard
    if (attached === undefined || this.#options.descending) return 0
    try {
      const { standing, sequence } = await this.#scope.standings.now(attached.peer, shard.place)
      if (standing.source.history === position.history && sequence === position.sequence) {
        const { requestId } = this.#context
        shard.attached = await completeStanding(this.#scope, standing, shard.place, { requestId })
        this.#reach(shard, sequence)
      }
    } catch { /* the position is also valid without the list of all replicas */ }
    return 0
  }

  async #pendingOf(shard: FeedShard): Promise<number> {
    if (shard.drained) return this.#settle(shard)
    for (;;) {
      const attached = await this.attach(shard)
      try {
        if (this.#options.descending) {
          const call = this.#call(this.#scope.options.readTimeoutMs)
          const { documentCount, deletedCount } = await attached.peer.replica.upkeep.replicaInfo(call)
          return Math.max(0, documentCount + deletedCount - shard.taken)
        }
        const call = this.#call(this.#scope.options.readTimeoutMs)
        return await attached.peer.replica.countChanges(shard.position.sequence, call)
      } catch (error) {
        this.#leave(shard, error)
      }
    }
  }
}
