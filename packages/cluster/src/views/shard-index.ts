import { ApiError, indexId, ReplicaError, shardKey } from '@sectional/core'
import type { CallContext, IndexHead, IndexReplica, ReplicaCheckpoint, RequiredSequence } from '@sectional/core'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { nextPage, pageTimeoutMs, releasePages } from '../shard-calls/replica-pages.ts'
import { confirmedReaders } from '../shard-calls/confirmed-readers.ts'
import { firstReadyIndex } from './index-build-race.ts'
import type { OpenedIndex, ReadRest, ShardRead } from './shard-read.ts'
import type { ViewScope } from './view-scope.ts'

/** How often a query waits for a build of an index that is absent again when it is read. */
const buildAttemptsMax = 3

/** Opens the index of one shard on one replica, as fresh as the query requires, and on another one after a failure. */
export class ShardIndex<Place, Row> {
  readonly #scope: ViewScope
  readonly #place: ShardPlace
  readonly #request: ShardRead<Place, Row>
  readonly #index: string
  /** The nodes whose replicas have failed since the last row arrived, and their errors. */
  readonly #failed = new Map<string, ReplicaError>()

  constructor(scope: ViewScope, place: ShardPlace, request: ShardRead<Place, Row>) {
    this.#scope = scope
    this.#place = place
    this.#request = request
    this.#index = indexId(request.definition)
  }

  /**
   * @param deadline monotonic time in milliseconds until which to wait for a build
   * @throws IndexBehindError when it has passed; ApiError when no replica is left
   */
  async open(rest: ReadRest<Place>, deadline: number): Promise<OpenedIndex<Row>> {
    for (;;) {
      const isNewest = this.#request.update === true
      const peers = await this.#readers(isNewest, deadline)
      this.#assertAny(peers)
      const opened = isNewest
        ? await this.#openNewest(peers, rest, deadline)
        : await this.#openAny(this.#newestFirst(peers), rest)
      if (opened === undefined) continue
      if (isNewest) this.#remember(opened.peer)
      return opened
    }
  }

  /**
   * Opens a replica that continues an answer behind its last row. Its index must have exactly the rows with which the
   * answer began: from another state, the row of a document whose key has changed could be missing, or be there twice.
   * An index that has other rows may be behind, so it is compared again when it is up to date.
   *
   * @param version of the index that the answer began with
   * @throws IndexBehindError, ApiError, also when the rows have changed since the answer began
   */
  async continue(rest: ReadRest<Place>, version: string, deadline: number): Promise<OpenedIndex<Row>> {
    let differs = false
    for (;;) {
      const peers = await this.#readers(false, deadline)
      if (peers.length === 0 && differs) throw rowsChanged()
      this.#assertAny(peers)
      const same = await this.#openSame(peers, rest, version)
      if (same !== undefined) return same
      const left = peers.filter(({ node }) => !this.#failed.has(node))
      const opened = left.length === 0 ? undefined : await this.#openNewest(left, rest, deadline)
      if (opened === undefined) continue
      if (opened.head.version === version) return opened
      this.#release(opened)
      differs = true
      this.failed(opened.peer, new ReplicaError('not_hosted', 'the index has other rows than the answer began with'))
    }
  }

  /**
   * Records that a replica has failed. `open` avoids it until another one has sent a row.
   *
   * @throws ApiError when no other replica should be asked (`failsWith`)
   */
  failed(peer: Peer, error: unknown): void {
    const failure = asReplicaError(error)
    if (failure.code === this.#request.failsWith) throw shardFailure([failure])
    if (failure.code === 'timeout') this.#scope.readHealth.silent(peer.node)
    this.#failed.set(peer.node, failure)
  }

  /** Records that rows have arrived, so that replicas which failed before may be asked again. */
  advanced(): void {
    this.#failed.clear()
  }

  /**
   * Begins a build without waiting for its end. A replica that lacks a write which this node has acknowledged gets some
   * time to receive it first, because nothing else builds what it receives later. Never rejects.
   */
  async beginBuild(peer: Peer): Promise<void> {
    const key = `${peer.node} ${shardKey(this.#place.id)} ${this.#index}`
    await this.#scope.lazyBuilds.request(key, () => this.#buildConfirmed(peer))
  }

  async #buildConfirmed(peer: Peer): Promise<void> {
    const { options: { missedWaitMs, readTimeoutMs }, runtime: { clock }, unconfirmed, lazyBuilds } = this.#scope
    const { definition, requestId } = this.#request
    const isUsable = ({ node }: Peer): boolean => node === peer.node
    const needed = { newest: unconfirmed.newest, isUsable, deadline: clock.monotonic() + missedWaitMs }
    try {
      await confirmedReaders(this.#scope, this.#place, needed, { requestId, signal: lazyBuilds.stopping })
      const request = { definition, through: 'newest', waitMs: 0 } as const
      await this.#indexes(peer).buildIndex(request, { timeoutMs: readTimeoutMs, requestId })
    } catch {
      // The next query begins the build.
    }
  }

  /** Returns the replicas to ask, without those that have failed. */
  async #readers(isNewest: boolean, deadline: number): Promise<readonly Peer[]> {
    const isUsable = ({ node }: Peer): boolean => !this.#failed.has(node)
    const needed = { newest: this.#request.newest, isUsable, deadline }
    const confirmed = isNewest ? await confirmedReaders(this.#scope, this.#place, needed, this.#request) : []
    return confirmed.length > 0 ? confirmed : this.#usable()
  }

  #usable(): readonly Peer[] {
    return this.#scope.access.readers(this.#place).filter(({ node }) => !this.#failed.has(node))
  }

  #remember({ node }: Peer): void {
    const isFirst = this.#scope.access.readers(this.#place)[0]?.node === node
    this.#scope.newestReaders.answered(this.#place.id, this.#index, node, isFirst)
  }

  #newestFirst(peers: readonly Peer[]): readonly Peer[] {
    const newest = this.#scope.newestReaders.nodeOf(this.#place.id, this.#index)
    const rank = ({ node }: Peer): number => node === newest ? 0 : 1
    return newest === undefined ? peers : peers.toSorted((a, b) => rank(a) - rank(b))
  }

  /** Returns the first index that has the rows of that version now; undefined when there is none. */
  async #openSame(
    peers: readonly Peer[], rest: ReadRest<Place>, version: string,
  ): Promise<OpenedIndex<Row> | undefined> {
    for (const peer of peers) {
      const opened = await this.#attempt(peer, () => this.#scan(peer, 0, rest))
      if (opened === 'absent' || opened === undefined) continue
      if (opened.head.version === version) return opened
      this.#release(opened)
    }
    return undefined
  }

  /** @throws ApiError when there is no replica, or the query has ended */
  #assertAny(peers: readonly Peer[]): void {
    if (peers.length === 0 || this.#request.signal.aborted) throw shardFailure([...this.#failed.values()])
  }

  #release({ pages }: OpenedIndex<Row>): void {
    this.#scope.background.track(releasePages(pages))
  }

  /** Returns undefined when the replica that was chosen has failed. */
  async #openNewest(
    peers: readonly Peer[], rest: ReadRest<Place>, deadline: number,
  ): Promise<OpenedIndex<Row> | undefined> {
    const first = peers[0]!
    const opened = await this.#attempt(first, () => this.#scan(first, 'newest', rest))
    if (opened !== 'absent') return opened
    const { signal, requestId, definition } = this.#request
    const build = { scope: this.#scope, place: this.#place, definition, deadline, signal, requestId }
    for (let attempt = 1; ; attempt++) {
      const { peer, required } = await firstReadyIndex(build, peers)
      const again = await this.#attempt(peer, () => this.#scan(peer, required.sequence, rest, required))
      if (again !== 'absent') return again
      if (attempt < buildAttemptsMax) continue
      this.failed(peer, new ReplicaError('not_hosted', 'the index disappears after each build'))
      return undefined
    }
  }

  /** Prefers a replica that has the index. When none has it, the first one that answers creates it. */
  async #openAny(peers: readonly Peer[], rest: ReadRest<Place>): Promise<OpenedIndex<Row> | undefined> {
    let without: Peer | undefined
    for (const peer of peers) {
      const opened = await this.#attempt(peer, () => this.#scan(peer, 0, rest))
      if (opened === 'absent') without ??= peer
      else if (opened !== undefined) return opened
    }
    if (without === undefined) return undefined
    const peer = without
    const { definition, requestId, signal } = this.#request
    const opened = await this.#attempt(peer, async () => {
      // With `through: 0`, the index is created without rows, and nothing is built.
      const call = { timeoutMs: this.#scope.options.readTimeoutMs, requestId, signal }
      await this.#indexes(peer).buildIndex({ definition, through: 0, waitMs: 0 }, call)
      return this.#scan(peer, 0, rest)
    })
    if (opened !== 'absent') return opened
    this.failed(peer, new ReplicaError('not_hosted', 'the replica does not exist, or it was replaced'))
    return undefined
  }

  /**
   * Returns undefined after a failure, which it records. `absent` is no failure: the replica does not have the index in
   * the required state, or was replaced by one that does not have it.
   */
  async #attempt(peer: Peer, act: () => Promise<OpenedIndex<Row>>): Promise<OpenedIndex<Row> | 'absent' | undefined> {
    try {
      return await act()
    } catch (error) {
      const { code } = asReplicaError(error)
      if (code === 'not_hosted' || code === 'other_history') return 'absent'
      this.failed(peer, error)
      return undefined
    }
  }

  /** @param required the position to which `through` belongs; absent: any history */
  async #scan(
    peer: Peer, through: RequiredSequence, rest: ReadRest<Place>, required?: ReplicaCheckpoint,
  ): Promise<OpenedIndex<Row>> {
    const { read, open, signal, requestId } = this.#request
    const call: CallContext = {
      timeoutMs: pageTimeoutMs(this.#scope, this.#usable().length), signal, requestId,
      ...(required !== undefined && { history: required.history }),
    }
    const request = { index: this.#index, through, ...read, ...rest }
    const pages = open(this.#indexes(peer), request, call)[Symbol.asyncIterator]()
    try {
      const [head, ...first] = await nextPage(this.#scope, peer, pages) ?? []
      if (head === undefined || !isHead(head)) {
        throw new ReplicaError('protocol', `the answer of ${peer.node} does not begin with a head`)
      }
      this.#scope.readHealth.answered(peer.node)
      return { peer, head, first: first as readonly Row[], pages }
    } catch (error) {
      this.#scope.background.track(releasePages(pages))
      throw error
    }
  }

  #indexes(peer: Peer): IndexReplica {
    return this.#scope.indexes.indexes(peer.node, this.#place.id)
  }
}

function isHead(row: unknown): row is IndexHead {
  return (row as Partial<IndexHead>).kind === 'head'
}

function rowsChanged(): ApiError {
  const reason = 'A replica failed during the answer, and the rows of the view have changed since it began. Try again.'
  return new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '5' } })
}
