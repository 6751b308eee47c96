import { shardKey } from '@sectional/core'
import type { EditOutcome, IndexReplica, ShardId, ShardReplica } from '@sectional/core'
import type { NodeObserver, SimulatedNode } from './simulated-node.ts'
import { withChanges } from './with-changes.ts'

/** The id of the calls by which a replica pulls changes from another one. */
const pullRequest = 'anti-entropy-pull'

/**
 * Lets a fault happen at a moment that random faults rarely meet: after a replica has stored an edit on its disk and
 * before anybody is told, or between two pages of a list.
 */
export class CriticalMoments implements NodeObserver {
  /** Keys of the shards whose checkpoints a drill has made false. */
  readonly falsified = new Set<string>()
  readonly #waiting = new Map<SimulatedNode, { readonly kind: EditOutcome['kind']; readonly act: () => void }>()
  #acknowledged: ((node: SimulatedNode) => void) | undefined
  #leading: ((node: SimulatedNode) => void) | undefined
  #indexPaged: ((node: SimulatedNode) => Promise<void>) | undefined
  #transferring: ((from: SimulatedNode, to: string) => void) | undefined
  #held: Promise<void> | undefined
  #examined = 0
  #paged: ((node: SimulatedNode) => void) | undefined
  #sending: { readonly reader: SimulatedNode; readonly act: (node: SimulatedNode) => void } | undefined
  #scanned: { readonly node: SimulatedNode; readonly act: () => void } | undefined
  #storing: {
    readonly node: SimulatedNode; readonly generation: number; readonly begin: () => void; readonly end: () => void
  } | undefined
  readonly #watched = new WeakMap<ShardReplica, ShardReplica>()
  readonly #replicas = new Map<string, ShardReplica>()

  /** `act` is called once, when a replica of the node decides an edit with this outcome the next time. */
  onceDecided(node: SimulatedNode, act: () => void, kind: EditOutcome['kind'] = 'updated'): void {
    this.#waiting.set(node, { kind, act })
  }

  /** `act` is called once, with the node whose replica has just sent the first page of documents or changes. */
  oncePaged(act: (node: SimulatedNode) => void): void {
    this.#paged = act
  }

  /** `act` is called once, with the node that has just sent the first page of an index. The next page waits for it. */
  onceIndexPaged(act: (node: SimulatedNode) => Promise<void>): void {
    this.#indexPaged = act
  }

  /** `act` is called once, with a node other than the reader that has begun to send content of an attachment. */
  onceSending(reader: SimulatedNode, act: (node: SimulatedNode) => void): void {
    this.#sending = { reader, act }
  }

  /** `act` is called once, when a replica of the node has sent the last changes that another one asked for. */
  onceScanned(node: SimulatedNode, act: () => void): void {
    this.#scanned = { node, act }
  }

  /** Calls `begin` before, and `end` after, a replica of the node stores revisions of a generation the first time. */
  onceStoring(node: SimulatedNode, generation: number, begin: () => void, end: () => void): void {
    this.#storing = { node, generation, begin, end }
  }

  /** `act` is called when a node has acknowledged new entries of the metadata log, before the leader is told. */
  onAcknowledged(act: (node: SimulatedNode) => void): void {
    this.#acknowledged = act
  }

  /** `act` is called once, when a node has begun to lead the metadata log and has not told the others. */
  onceLeading(act: (node: SimulatedNode) => void): void {
    this.#leading = act
  }

  /** `act` is called when a node is about to send a piece of a snapshot of the metadata, or the answer to one. */
  onTransfer(act: (from: SimulatedNode, to: string) => void): void {
    this.#transferring = act
  }

  /** A checker that sees the messages of the metadata log calls this. */
  acknowledged(node: SimulatedNode): void {
    this.#acknowledged?.(node)
  }

  /** The same for the first message of a leader. */
  leads(node: SimulatedNode): void {
    const act = this.#leading
    this.#leading = undefined
    act?.(node)
  }

  /** The same for messages that transfer a snapshot. */
  transfers(from: SimulatedNode, to: string): void {
    this.#transferring?.(from, to)
  }

  /** Lets a checker examine each of the next events of which it otherwise examines a sample. */
  examine(events: number): void {
    this.#examined = events
  }

  /** Returns whether an event of which only a sample is examined must be examined. */
  takeExamined(): boolean {
    return this.#examined > 0 && this.#examined-- > 0
  }

  /** Lets lists arrive only after the returned function was called, with what the replicas had when they were asked. */
  holdLists(): () => void {
    const held = Promise.withResolvers<void>()
    this.#held = held.promise
    return () => {
      if (this.#held === held.promise) this.#held = undefined
      held.resolve()
    }
  }

  /** Forgets what was to happen on any node. */
  cancel(): void {
    this.#waiting.clear()
    this.#paged = this.#acknowledged = this.#leading = this.#scanned = this.#storing = this.#sending = undefined
    this.#transferring = this.#indexPaged = undefined
  }

  /** Returns the replica that the node used last. Only drills that break a rule of the cluster on purpose call it. */
  replicaOf(node: SimulatedNode, shard: ShardId): ShardReplica | undefined {
    return this.#replicas.get(`${node.name} ${shardKey(shard)}`)
  }

  replica(node: SimulatedNode, shard: ShardId, replica: ShardReplica): ShardReplica {
    this.#replicas.set(`${node.name} ${shardKey(shard)}`, replica)
    const known = this.#watched.get(replica)
    if (known !== undefined) return known
    const watched = withChanges<ShardReplica>(replica, {
      updateDocuments: async (request, context) => {
        const reply = await replica.updateDocuments(request, context)
        const waiting = this.#waiting.get(node)
        if (reply.kind === 'decided' && reply.outcomes.some(({ kind }) => kind === waiting?.kind)) {
          this.#waiting.delete(node)
          waiting!.act()
        }
        return reply
      },
      storeRevisions: async (request, context) => {
        const storing = this.#storing
        if (storing?.node !== node || !request.revisions.some(({ path }) => path.start === storing.generation)) {
          return replica.storeRevisions(request, context)
        }
        this.#storing = undefined
        storing.begin()
        try {
          return await replica.storeRevisions(request, context)
        } finally {
          storing.end()
        }
      },
      scanChanges: (request, context) => context.requestId === pullRequest
        ? this.#scanning(node, replica.scanChanges(request, context))
        : this.#paging(node, replica.scanChanges(request, context)),
      scanDocuments: (request, context) => this.#holding(this.#paging(node, replica.scanDocuments(request, context))),
      blobs: withChanges(replica.blobs, {
        readBlob: (request, context) => this.#sendingContent(node, replica.blobs.readBlob(request, context)),
      }),
    })
    this.#watched.set(replica, watched)
    return watched
  }

  indexes(node: SimulatedNode, indexes: IndexReplica): IndexReplica {
    return this.#indexPaged === undefined ? indexes : withChanges(indexes, {
      scanIndex: (request, context) => this.#indexPaging(node, indexes.scanIndex(request, context)),
    })
  }

  async *#indexPaging<Page>(node: SimulatedNode, pages: AsyncIterable<Page>): AsyncGenerator<Page> {
    for await (const page of pages) {
      yield page
      const act = this.#indexPaged
      this.#indexPaged = undefined
      await act?.(node)
    }
  }

  async *#sendingContent<Chunk>(node: SimulatedNode, chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
    for await (const chunk of chunks) {
      yield chunk
      if (this.#sending === undefined || this.#sending.reader === node) continue
      const { act } = this.#sending
      this.#sending = undefined
      act(node)
    }
  }

  async *#scanning<Page>(node: SimulatedNode, pages: AsyncIterable<Page>): AsyncGenerator<Page> {
    yield* pages
    if (this.#scanned?.node !== node) return
    const { act } = this.#scanned
    this.#scanned = undefined
    act()
  }

  async *#holding<Page>(pages: AsyncIterable<Page>): AsyncGenerator<Page> {
    for await (const page of pages) {
      await this.#held
      yield page
    }
    await this.#held
  }

  async *#paging<Page>(node: SimulatedNode, pages: AsyncIterable<Page>): AsyncGenerator<Page> {
    for await (const page of pages) {
      yield page
      const act = this.#paged
      this.#paged = undefined
      act?.(node)
    }
  }
}
