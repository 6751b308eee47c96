import type {
  BuildIndexReply, BuildIndexRequest, CallContext, ChangeReplica, FindRequest, FindRow, ImmediateIndexReads,
  IndexDefinition, IndexHead, IndexInfo, IndexRead, IndexReplica, IndexRow, PageLimits, ReducedGroup,
  ReduceIndexRequest, ReplicaCheckpoint, RequiredSequence, RowsOfKey, ScanIndexRequest,
} from '@sectional/core'
import { indexId, newestPosition, ReplicaError } from '@sectional/core'
import type { Clock, Turns } from '@sectional/runtime'
import { corruptionIn, damageIn, toReplicaError } from '../calls/call-guard.ts'
import { ReplicaCalls } from '../calls/replica-calls.ts'
import type { BuildQueue } from './build-queue.ts'
import { waitForBuild } from './build-wait.ts'
import { type FindParts, findInReplica } from './find/document-find.ts'
import { findByIndex } from './find/index-find.ts'
import { ImmediateReads } from './immediate-reads.ts'
import { type BuildParts, type BuildProgress, IndexBuild } from './index-build.ts'
import { IndexContent, indexState } from './index-content.ts'
import { reduceIndex } from './index-reduction.ts'
import { scanIndex } from './index-scan.ts'
import { IndexSnapshot } from './index-snapshot.ts'
import type { IndexStore } from './index-store.ts'
import type { Indexer } from './indexer.ts'

export interface ShardIndexesParts {
  /** Names the replica in the store of indexes. Another replica of the node never has the same name. */
  readonly owner: string
  /** Names the database of the replica. */
  readonly database: string
  readonly store: IndexStore
  readonly replica: ChangeReplica
  /** Returns the newest position of the replica at once; undefined when it cannot be read, or not at once. */
  readonly newest?: () => ReplicaCheckpoint | undefined
  readonly indexer: Indexer
  /** Shared by all replicas of the node. */
  readonly queue: BuildQueue
  readonly clock: Clock
  readonly turns: Turns
  /** What `find` needs. When undefined, it is refused. */
  readonly find?: Pick<FindParts, 'documents' | 'machine'>
  readonly onFailure?: BuildParts['onFailure']
}

/** A build that runs. */
export interface IndexTask extends BuildProgress {
  /** The id of the index (`indexId`). */
  readonly index: string
}

/** How long a query by two indexes waits for the second one, in milliseconds. Then it reads the first one only. */
const filterWaitMs = 250

interface OpenedIndex {
  readonly definition: IndexDefinition
  readonly build: IndexBuild
  readonly content: IndexContent
  readonly snapshot: IndexSnapshot
}

/**
 * The indexes of one replica of one shard, in the store of indexes of the node (docs/decisions/0017-index-engine.md).
 */
export class ShardIndexes implements IndexReplica {
  readonly #parts: ShardIndexesParts
  readonly #builds = new Map<string, IndexBuild>()
  /** Reads from memory. They stop to answer when the indexes are closed. */
  readonly immediate: ImmediateIndexReads
  #closed = false

  constructor(parts: ShardIndexesParts) {
    this.#parts = parts
    const { store, owner, indexer, newest = () => undefined } = parts
    this.immediate = new ImmediateReads({ store, newest, contentOf: index => this.#builds.get(index)?.content })
    for (const [id, stored] of store.indexesOf(owner)) {
      // An index that cannot be used stays in the directory until it is created anew, or dropped.
      const isCurrent = stored.indexerVersion === indexer.versionOf(stored.definition)
      const content = isCurrent ? loaded(stored, this.#buildParts) : undefined
      if (content !== undefined) this.#builds.set(id, IndexBuild.load(content, this.#buildParts))
    }
  }

  async buildIndex(
    { definition, through, waitMs }: BuildIndexRequest, context: CallContext,
  ): Promise<BuildIndexReply> {
    try {
      const now = await newestPosition(this.#parts.replica, context)
      if (this.#closed) throw closed()
      const sequence = required(through, now)
      const id = indexId(definition)
      const build = this.#builds.get(id) ?? IndexBuild.create(definition, now.history, this.#buildParts)
      this.#builds.set(id, build)
      build.request({ history: now.history, sequence })
      await waitForBuild(build, { history: now.history, sequence }, waitMs, context, this.#parts.clock)
      const { content } = build
      await content.created()
      return { ...content.state, through: sequence }
    } catch (error) {
      throw toReplicaError(error)
    }
  }

  async* scanIndex(
    request: ScanIndexRequest, context: CallContext,
  ): AsyncGenerator<readonly (IndexHead | IndexRow)[]> {
    const opened = await this.#open(request, context)
    const { store, turns } = this.#parts
    yield* this.#pages(opened, context, check => (
      store.scanPages.hold(limits => scanIndex(opened.snapshot, request, turns, check, limits))))
  }

  async* reduceIndex(
    request: ReduceIndexRequest, context: CallContext,
  ): AsyncGenerator<readonly (IndexHead | ReducedGroup)[]> {
    const opened = await this.#open(request, context)
    const { store } = this.#parts
    const { definition, snapshot } = opened
    const head: IndexHead = { kind: 'head', ...indexState(snapshot.state), rowsBefore: 0 }
    yield* this.#pages(opened, context, check => {
      if (definition.reduce === null) throw new ReplicaError('protocol', 'the index has no reduce function')
      return store.scanPages.hold(limits => withHead(head, this.#groups(opened, request, check, limits)))
    })
  }

  async* find(request: FindRequest, context: CallContext): AsyncGenerator<readonly FindRow[]> {
    if (this.#parts.find === undefined) throw new ReplicaError('not_hosted', 'documents cannot be found here')
    const found = { ...this.#parts, ...this.#parts.find }
    yield* this.#parts.store.scanPages.hold(pages => this.#find({ ...found, pages }, request, context))
  }

  async* #find(parts: FindParts, request: FindRequest, context: CallContext): AsyncGenerator<readonly FindRow[]> {
    const { source } = request
    if (source.kind === 'documents') return yield* findInReplica(parts, request, context)
    const opened = await this.#open(source, context)
    const filter = source.within && await this.#openFilter(source.within, context)
    const noteFailure = (error: unknown): void => filter?.content.noteFailure(error)
    const groupOf = (key: string, columns: number): string =>
      this.#parts.indexer.groupOf(key, columns, opened.definition)
    const found = { ...opened, groupOf, ...(filter && { filter: { snapshot: filter.snapshot, noteFailure } }) }
    try {
      yield* this.#pages(opened, context, check => findByIndex(parts, found, request, check))
    } finally {
      await filter?.snapshot.close()
    }
  }

  /** Opens the second index of a request, up to date. Returns undefined when it is not there, or not soon. */
  async #openFilter({ index }: RowsOfKey, context: CallContext): Promise<OpenedIndex | undefined> {
    const build = this.#builds.get(index)
    if (build === undefined || this.#closed) return undefined
    try {
      const now = await newestPosition(this.#parts.replica, context)
      build.request(now)
      await waitForBuild(build, now, filterWaitMs, context, this.#parts.clock)
      return await this.#open({ index, through: now.sequence }, { ...context, history: now.history })
    } catch {
      // The answer does not depend on the second index, so its failures do not matter here.
      return undefined
    }
  }

  #groups(
    { definition, snapshot }: OpenedIndex, request: ReduceIndexRequest, check: () => void, limits: PageLimits,
  ): AsyncGenerator<readonly ReducedGroup[]> {
    const { store: { reductions }, indexer } = this.#parts
    const { version } = snapshot.state
    const known = reductions.groupsOf(version, request.groupLevel)
    return reductions.open(
      version, request, () => reduceIndex(snapshot, definition, indexer, request, known, check, limits),
      limits.pageBytes, ({ value }) => indexer.isFailure?.(definition, value) ?? false)
  }

  async indexInfo(index: string, context: CallContext): Promise<IndexInfo> {
    const { definition, build, content, snapshot } = await this.#open({ index, through: 0 }, context)
    const { keys, state } = snapshot
    try {
      const { activeBytes: active, externalBytes: external } = state
      const file = await this.#parts.store.store.approximateSize(keys.all())
      return {
        ...indexState(state), definition, building: build.building, waiting: build.listeners.size,
        failedCount: state.failedCount, failures: await snapshot.failures(),
        // LevelDB's estimate does not include the data that is only in its memory table and log.
        sizes: { file: Math.max(file, active), active, external },
      }
    } catch (error) {
      content.noteFailure(error)
      throw toReplicaError(error)
    } finally {
      await snapshot.close()
    }
  }

  async dropIndexes({ except }: { readonly except: readonly string[] }, context: CallContext): Promise<void> {
    try {
      const { replica, store, owner } = this.#parts
      await newestPosition(replica, context)
      const kept = new Set(except)
      const dropped = [...store.indexesOf(owner).keys()].filter(id => !kept.has(id))
      for (const id of dropped) {
        void this.#builds.get(id)?.end(new ReplicaError('not_hosted', 'the index was dropped'))
        this.#builds.delete(id)
      }
      await store.drop(owner, dropped)
    } catch (error) {
      throw toReplicaError(error)
    }
  }

  /**
   * Ends all builds, and refuses new ones. Calls that wait for them reject with `closed`. Resolves when no build runs
   * any more.
   */
  async close(): Promise<void> {
    this.#closed = true
    const builds = [...this.#builds.values()]
    this.#builds.clear()
    await Promise.all(builds.map(build => build.end(closed())))
  }

  /** Returns the builds that run now. */
  tasks(): readonly IndexTask[] {
    return [...this.#builds].flatMap(([index, { progress }]) => progress === undefined ? [] : { index, ...progress })
  }

  get #buildParts(): BuildParts {
    return this.#parts
  }

  /** Opens a snapshot of an index that belongs to the replica's history and has reached the required sequence. */
  async #open(
    { index, through }: Pick<IndexRead<never>, 'index' | 'through'>, context: CallContext,
  ): Promise<OpenedIndex> {
    const { replica, store } = this.#parts
    const now = await newestPosition(replica, context)
    const build = this.#builds.get(index)
    const content = build?.content
    if (content === undefined || content.history !== now.history || content.isBroken) throw unknown(index)
    try {
      // The creation may fail, and the index may be dropped or begin anew meanwhile.
      await content.created().catch(() => { throw unknown(index) })
      if (this.#builds.get(index)?.content !== content) throw unknown(index)
      const snapshot = IndexSnapshot.open(store, content)
      const { sequence } = snapshot.state
      if (sequence >= required(through, now)) return { definition: build!.definition, build: build!, content, snapshot }
      await snapshot.close()
      throw new ReplicaError('not_hosted', `the index ${index} is only at sequence ${sequence}`)
    } catch (error) {
      content.noteFailure(error)
      throw toReplicaError(error)
    }
  }

  /** Runs a scan, and closes its snapshot. The call's timeout bounds the wait for each page. */
  async* #pages<Row>(
    { snapshot, content }: OpenedIndex, context: CallContext,
    read: (check: () => void) => AsyncGenerator<readonly Row[]>,
  ): AsyncGenerator<readonly Row[]> {
    const calls = new ReplicaCalls(snapshot.state.history, this.#parts.clock, () => {})
    let ended = false
    const check = (): void => {
      if (ended) throw new ReplicaError('cancelled', 'the call has ended')
    }
    try {
      yield* calls.pages(context, () => read(check))
    } catch (error) {
      content.noteFailure(error)
      throw error
    } finally {
      ended = true
      await snapshot.close()
    }
  }
}

/** Puts the head before the first row of an answer. */
async function* withHead<Row>(
  head: IndexHead, pages: AsyncIterable<readonly Row[]>,
): AsyncGenerator<readonly (IndexHead | Row)[]> {
  let isFirst = true
  for await (const page of pages) {
    yield isFirst ? [head, ...page] : page
    isFirst = false
  }
  if (isFirst) yield [head]
}

/** Returns the content of an index in the store; undefined when its state is damaged. */
function loaded(stored: Parameters<typeof IndexContent.load>[0], parts: BuildParts): IndexContent | undefined {
  try {
    return IndexContent.load(stored, parts)
  } catch (error) {
    if (corruptionIn(error) !== undefined) parts.store.reportDamage(error)
    else if (damageIn(error) !== undefined) parts.store.reportDamagedIndex(stored.definition, error)
    else throw error
    return undefined
  }
}

function required(through: RequiredSequence, { sequence }: ReplicaCheckpoint): number {
  return through === 'newest' ? sequence : Math.min(through, sequence)
}

function closed(): ReplicaError {
  return new ReplicaError('closed', 'the indexes are closed')
}

function unknown(index: string): ReplicaError {
  return new ReplicaError('not_hosted', `the replica has no index ${index}`)
}
