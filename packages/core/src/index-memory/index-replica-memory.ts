/**
 * An `IndexReplica` in memory, the simple model with which index engines are compared. Each read sorts all rows. It
 * reads its replica through `ChangeReplica` only.
 */
import type {
  BuildIndexReply, BuildIndexRequest, FindRequest, FindRow, IndexHead, IndexInfo, IndexRead, IndexReplica, IndexRow,
  ReadDocuments, ReducedGroup, ReduceIndexRequest, RequiredSequence, RowsOfKey, ScanIndexRequest,
} from '../contracts/index-replica.ts'
import { indexFailuresMax, indexId } from '../contracts/index-replica.ts'
import type { CallContext, ChangeReplica, ReplicaCheckpoint } from '../contracts/shard-replica.ts'
import { newestPosition, ReplicaError } from '../contracts/shard-replica.ts'
import { findDocuments } from './document-find.ts'
import { IndexBuild } from './index-build.ts'
import type { Indexer } from './indexer.ts'
import { countBefore, readGroups, readRows } from './row-ranges.ts'

export interface MemoryIndexReplicaOptions {
  readonly replica: ChangeReplica
  /** The documents of that replica, for `find`. Absent: `find` rejects. */
  readonly documents?: ReadDocuments
  readonly indexer: Indexer
  /** Calls back once after `ms`. A runtime's clock will do. */
  readonly clock: { setTimer(ms: number, callback: () => void): { cancel(): void } }
}

const pageRows = 100
/** Timeout of the calls that a build makes on its replica. */
const callTimeoutMs = 5000

export class MemoryIndexReplica implements IndexReplica {
  readonly #options: MemoryIndexReplicaOptions
  readonly #builds = new Map<string, IndexBuild>()

  constructor(options: MemoryIndexReplicaOptions) {
    this.#options = options
  }

  async buildIndex(
    { definition, through, waitMs }: BuildIndexRequest, context: CallContext,
  ): Promise<BuildIndexReply> {
    const now = await newestPosition(this.#options.replica, context)
    const sequence = required(through, now)
    const id = indexId(definition)
    const build = this.#builds.get(id) ?? this.#create(definition, now.history)
    this.#builds.set(id, build)
    build.request({ history: now.history, sequence })
    await this.#reach(build, { history: now.history, sequence }, waitMs, context)
    return { ...build.content.state(), through: sequence }
  }

  async* scanIndex(
    request: ScanIndexRequest, context: CallContext,
  ): AsyncGenerator<readonly (IndexHead | IndexRow)[]> {
    const { content } = await this.#open(request, context)
    const sorted = content.sorted()
    const rowsBefore = countBefore(sorted, request.ranges, request.descending)
    const head: IndexHead = { kind: 'head', ...content.state(), rowsBefore }
    yield* inPages([head, ...readRows(sorted, request).map((row): IndexRow => ({ kind: 'row', ...row }))], context)
  }

  async* reduceIndex(
    request: ReduceIndexRequest, context: CallContext,
  ): AsyncGenerator<readonly (IndexHead | ReducedGroup)[]> {
    const { content, definition } = await this.#open(request, context)
    if (definition.reduce === null) throw new ReplicaError('protocol', 'the index has no reduce function')
    const { indexer } = this.#options
    const { groupLevel } = request
    const groupOf = (key: string): string =>
      groupLevel === 'exact' ? key : groupLevel === 0 ? '' : indexer.groupOf(key, groupLevel)
    const groups = readGroups(content.sorted(), request, groupOf).map(({ range, group, rows }): ReducedGroup =>
      ({ kind: 'group', range, group, value: indexer.reduce(definition, rows) }))
    yield* inPages([{ kind: 'head' as const, ...content.state(), rowsBefore: 0 }, ...groups], context)
  }

  async* find(request: FindRequest, context: CallContext): AsyncGenerator<readonly FindRow[]> {
    const { documents } = this.#options
    if (documents === undefined) throw new ReplicaError('not_hosted', 'the documents of the replica are not known')
    const { source } = request
    const opened = source.kind === 'index' ? await this.#open(source, context) : undefined
    const head = opened && [{ kind: 'head' as const, ...opened.content.state(), rowsBefore: 0 }]
    const filter = source.kind === 'index' && source.within ? await this.#idsOf(source.within, context) : undefined
    const found = await findDocuments(documents, opened, request, context, filter)
    yield* inPages([...head ?? [], ...found], context)
  }

  /** Returns the ids of the documents with rows of a key; undefined when the index is not up to date. */
  async #idsOf({ index, key }: RowsOfKey, context: CallContext): Promise<ReadonlySet<string> | undefined> {
    const opened = await this.#open({ index, through: 'newest' }, context).catch(() => undefined)
    return opened && new Set(opened.content.sorted().filter(row => row.key === key).map(({ id }) => id))
  }

  async indexInfo(index: string, context: CallContext): Promise<IndexInfo> {
    const { content, definition, building, listeners } = await this.#open({ index, through: 0 }, context)
    const bytes = content.sorted().reduce((sum, { key, value }) => sum + key.length + value.length, 0)
    const failures = content.failures()
    return {
      ...content.state(), definition, building, waiting: listeners.size,
      failedCount: failures.length, failures: failures.slice(0, indexFailuresMax),
      sizes: { file: bytes, active: bytes, external: bytes },
    }
  }

  async dropIndexes({ except }: { readonly except: readonly string[] }, context: CallContext): Promise<void> {
    await newestPosition(this.#options.replica, context)
    const kept = new Set(except)
    this.#end(id => !kept.has(id), new ReplicaError('not_hosted', 'the index was dropped'))
  }

  /** Ends all builds. Calls that wait for them reject with `closed`. */
  close(): void {
    this.#end(() => true, new ReplicaError('closed', 'the indexes are closed'))
  }

  #end(isEnded: (id: string) => boolean, reason: ReplicaError): void {
    for (const [id, build] of this.#builds) {
      if (!isEnded(id)) continue
      this.#builds.delete(id)
      build.end(reason)
    }
  }

  #create(definition: BuildIndexRequest['definition'], history: string): IndexBuild {
    const { replica, indexer } = this.#options
    return new IndexBuild(definition, history, { replica, indexer, callTimeoutMs })
  }

  /** Returns an index that belongs to the replica's history and has reached the required sequence. */
  async #open(
    { index, through }: Pick<IndexRead<never>, 'index' | 'through'>, context: CallContext,
  ): Promise<IndexBuild> {
    const now = await newestPosition(this.#options.replica, context)
    const build = this.#builds.get(index)
    if (build?.content.history !== now.history) {
      throw new ReplicaError('not_hosted', `the replica has no index ${index}`)
    }
    if (build.content.sequence >= required(through, now)) return build
    throw new ReplicaError('not_hosted', `the index ${index} is only at sequence ${build.content.sequence}`)
  }

  /** Waits until the index has reached the position, but no longer than `waitMs`. */
  #reach(
    build: IndexBuild, { history, sequence }: ReplicaCheckpoint, waitMs: number, { timeoutMs, signal }: CallContext,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => (): void => {
        timer?.cancel()
        build.listeners.delete(look)
        signal?.removeEventListener('abort', cancel)
        act()
      }
      const fail = (code: 'cancelled' | 'other_history' | 'timeout', message: string): () => void =>
        settle(() => reject(new ReplicaError(code, message)))
      const cancel = fail('cancelled', 'the caller has cancelled the call')
      const look = (failure?: unknown): void => {
        if (failure !== undefined) settle(() => reject(failure))()
        else if (build.content.history !== history) fail('other_history', 'the replica has a new history')()
        else if (waitMs <= 0 || build.content.sequence >= sequence) settle(resolve)()
      }
      const timer = waitMs <= 0 ? undefined : this.#options.clock.setTimer(
        Math.min(waitMs, timeoutMs),
        waitMs < timeoutMs ? settle(resolve) : fail('timeout', `the index was not built within ${timeoutMs} ms`),
      )
      build.listeners.add(look)
      signal?.addEventListener('abort', cancel, { once: true })
      look()
    })
  }
}

function required(through: RequiredSequence, { sequence }: ReplicaCheckpoint): number {
  return through === 'newest' ? sequence : Math.min(through, sequence)
}

/** Returns the rows in pages. They are computed before the first page, so that they are of one state. */
async function* inPages<Row>(rows: readonly Row[], { signal }: CallContext): AsyncGenerator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += pageRows) {
    if (signal?.aborted) throw new ReplicaError('cancelled', 'the caller has cancelled the call')
    yield rows.slice(at, at + pageRows)
  }
}
