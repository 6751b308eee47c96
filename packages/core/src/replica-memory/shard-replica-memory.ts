/**
 * A `ShardReplica` in memory, for tests of the layers above it and as the simple model with which engines are compared.
 * Nothing is durable. Each call answers from the state at that moment.
 */
import { attachmentDigests, editedAttachments } from '../revisions/edited-attachments.ts'
import { isPurged, purgesOf } from '../revisions/purge-record.ts'
import { revisionHash } from '../revisions/revision-hash.ts'
import { joinedToParent, parseRevision } from '../revisions/revision-id.ts'
import { documentLeavesMax, revisionOf, RevisionTree } from '../revisions/revision-tree.ts'
import { designPrefix } from '../sharding/document-id.ts'
import { extendTrail, followTrail } from '../sequences/sequence-trail.ts'
import { timeSpanMin, withChange } from '../sequences/time-spans.ts'
import type {
  CallContext, ChangeRow, CountDocumentsRequest, DiffRevisionsRequest, DocumentEdit, DocumentRevision, DocumentRow,
  DocumentSnapshot, EditOutcome, IdBound, LocalDocument, OpenDocumentRequest, OpenRevisionsRequest, OpenedRevision,
  PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow, ReplicaCheckpoint, ReplicaDiff, ReplicaErrorCode,
  ScanChangesRequest, ScanDocumentsRequest, ScanLocalDocumentsRequest, ShardReplica, StoreRevisionsReply,
  StoreRevisionsRequest, TimeSpan, TrailPoint, UpdateDocumentsReply, UpdateDocumentsRequest, UpdateLocalDocumentReply,
  UpdateLocalDocumentRequest,
} from '../contracts/shard-replica.ts'
import { fittingFirst, openedBytes, ReplicaError } from '../contracts/shard-replica.ts'
import { MemoryBlobs } from './blobs-memory.ts'
import { compareBytes, MemoryState } from './state-memory.ts'
import { MemoryUpkeep } from './upkeep-memory.ts'

export interface MemoryShardReplicaOptions {
  /** Identifies this incarnation of the replica (`ReplicaInfo.history`). */
  readonly history: string
  /** Milliseconds for the stamps of local documents. Default: a counter. */
  readonly now?: () => number
  /** Whether only the partition of an id is hashed; default false. It only affects digests. */
  readonly partitioned?: boolean
  /** Called after each change, as by an engine. `documents` is false when only local documents changed. */
  readonly onCommit?: (documents: boolean, designs: boolean) => void
  /** Called when a sender reports that this replica missed revisions (`StoreRevisionsRequest.missed`). */
  readonly onMissed?: () => void
}

interface StoredLocal { readonly document: LocalDocument; readonly sequence: number }

export class MemoryShardReplica implements ShardReplica {
  readonly blobs: MemoryBlobs
  readonly upkeep: MemoryUpkeep
  readonly #options: MemoryShardReplicaOptions
  readonly #state: MemoryState
  readonly #locals = new Map<string, StoredLocal>()
  readonly #trails = new Map<string, readonly TrailPoint[]>()
  readonly #watchers = new Set<() => boolean>()
  /** Documents that purges removed completely, in the order of the purges, with the sequence of the purge's change. */
  #purgedDocuments: readonly { readonly id: string; readonly sequence: number; readonly purgeSequence: number }[] = []
  /** Sequence of the newest change in `#purgedDocuments` that was trimmed; 0: none was. */
  #purgesForgotten = 0
  #timeSpans: readonly TimeSpan[] = []
  /** The attempts that revisions were stored with, by `{document id}/{revision}`. */
  readonly #attempts = new Map<string, number>()
  /** The same, also of revisions that came again without their attempts, or first without them. */
  readonly #knownAttempts = new Map<string, number>()
  #bodyKey = 0
  #ticks = 0

  constructor(options: MemoryShardReplicaOptions) {
    this.#options = options
    this.#state = new MemoryState(options.history)
    this.blobs = new MemoryBlobs(this.#state)
    this.upkeep = new MemoryUpkeep(this.#state, options.partitioned ?? false)
  }

  /** While true, `updateDocuments` declines unless it is forced. */
  get catchingUp(): boolean { return this.#state.catchingUp }
  set catchingUp(catchingUp: boolean) { this.#state.catchingUp = catchingUp }

  async openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null> {
    this.#state.check(context)
    const stored = this.#state.documents.get(request.id)
    if (stored === undefined) return null
    const { tree, sequence } = stored
    const body = request.body ? this.#state.body(tree.winner().bodyKey) : undefined
    return { leaves: tree.leaves(), sequence, ...body, ...(request.tree && { tree: tree.branches() }) }
  }

  async openRevisions(
    requests: readonly OpenRevisionsRequest[], context: CallContext,
  ): Promise<readonly (readonly OpenedRevision[])[]> {
    this.#state.check(context)
    const answers = requests.map(({ id, revisions, latest }) => {
      const tree = this.#state.tree(id)
      const wanted = revisions === 'leaves' ? tree.leaves().map(leaf => leaf.revision)
        : latest ? [...new Set(revisions.flatMap(revision =>
          tree.has(revision) ? tree.latest(revision) : [revision]))] : revisions
      return wanted.map(revision => this.#open(id, tree, revision))
    })
    return fittingFirst(answers, openedBytes)
  }

  async updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply> {
    this.#state.check(context)
    if (this.#state.catchingUp && !request.force) return { kind: 'declined' }
    this.blobs.require(request.edits)
    const outcomes = this.#stemmed(request.edits, request.revsLimit, () =>
      request.edits.map(edit => this.#edit(edit, request)))
    if (outcomes.some(outcome => outcome.kind === 'updated')) this.#committed(request.edits)
    return { kind: 'decided', outcomes }
  }

  async storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply> {
    this.#state.check(context)
    if (request.missed) this.#options.onMissed?.()
    this.blobs.require(request.revisions)
    const before = this.#state.sequence
    const { revisions, revsLimit, external = false } = request
    const results = this.#stemmed(revisions, revsLimit, () =>
      revisions.map(revision => this.#storeRevision(revision, external)))
    const having = (wanted: string): number[] => [...results.keys()].filter(index => results[index] === wanted)
    const [rivals, refused] = [having('rival'), having('refused')]
    for (const local of request.locals ?? []) {
      const stored = this.#locals.get(local.id)?.document
      if (stored === undefined || compareLocals(local, stored) > 0) this.#putLocal(local)
    }
    const { checkpoint } = request
    if (checkpoint !== undefined) {
      advance(this.#state.seen, checkpoint)
    }
    if (request.trail !== undefined) {
      const { history, base, points } = request.trail
      this.#trails.set(history, extendTrail(this.#trails.get(history) ?? [], base, points))
    }
    if (this.#state.sequence > before) this.#committed(revisions)
    return { rivals, ...(refused.length > 0 && { refused }) }
  }

  async diffRevisions(
    requests: readonly DiffRevisionsRequest[], context: CallContext,
  ): Promise<readonly ReplicaDiff[]> {
    this.#state.check(context)
    return requests.map(({ id, revisions }) => {
      const tree = this.#state.tree(id)
      const missing = tree.missing(revisions)
      return {
        id, missing, possibleAncestors: missing.length === 0 ? [] : tree.possibleAncestors(missing),
        sequence: this.#state.documents.get(id)?.sequence ?? 0,
        otherLeaves: tree.leaves().some(leaf => !revisions.includes(leaf.revision)),
      }
    })
  }

  scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncIterable<readonly DocumentRow[]> {
    const rows = this.#state.live().filter(([id]) => inSpan(id, request)).map(([id, { tree }]): DocumentRow => {
      const leaves = tree.leaves()
      const body = request.body ? this.#state.body(tree.winner().bodyKey) : undefined
      return { id, revision: leaves[0]!.revision, ...body, ...(request.leaves && { leaves }) }
    })
    return this.#state.pages(request.descending ? rows.reverse() : rows, request.limit, context)
  }

  async countDocuments(request: CountDocumentsRequest, context: CallContext): Promise<number> {
    this.#state.check(context)
    const { before, descending } = request
    if (before === undefined) return this.#state.live().length
    return this.#state.live().filter(([id]) => !inSpan(id, { start: before, descending })).length
  }

  scanChanges(request: ScanChangesRequest, context: CallContext): AsyncIterable<readonly ChangeRow[]> {
    const { history = this.#state.history, since } = request
    if (history !== this.#state.history) return failing('not_hosted', 'the replica has another history')
    if (request.purges && since > 0 && since < this.#purgesForgotten) {
      return failing('position_expired', `the purges up to sequence ${this.#purgesForgotten} were trimmed: read from 0`)
    }
    const rows: ChangeRow[] = []
    for (const [id, { tree, sequence }] of this.#state.documents) {
      const body = request.body ? this.#state.body(tree.winner().bodyKey) : undefined
      if (request.descending || sequence > request.since) rows.push({ sequence, id, leaves: tree.leaves(), ...body })
    }
    if (request.locals) {
      for (const [id, { sequence }] of this.#locals) {
        if (request.descending || sequence > request.since) rows.push({ sequence, id, leaves: [], local: true })
      }
    }
    if (request.purges) {
      const last = new Map(this.#purgedDocuments.map(({ id, sequence }) => [id, sequence]))
      for (const [id, sequence] of last) {
        if (this.#state.documents.has(id)) continue
        if (request.descending || sequence > request.since) rows.push({ sequence, id, leaves: [], purged: true })
      }
    }
    rows.sort((a, b) => request.descending ? b.sequence - a.sequence : a.sequence - b.sequence)
    return this.#state.pages(rows, request.limit, context)
  }

  async countChanges(since: number, context: CallContext): Promise<number> {
    this.#state.check(context)
    return [...this.#state.documents.values()].filter(({ sequence }) => sequence > since).length
  }

  waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    return new Promise((resolve, reject) => {
      const look = (): boolean => {
        const { history } = this.#state
        if (history === seen.history && this.#state.sequence <= seen.sequence) return false
        settle()
        resolve({ history, sequence: this.#state.sequence })
        return true
      }
      const aborted = (): void => {
        settle()
        reject(new ReplicaError('cancelled', 'the caller has cancelled the call'))
      }
      const settle = (): void => {
        this.#watchers.delete(look)
        context.signal?.removeEventListener('abort', aborted)
      }
      this.#state.check(context)
      if (look()) return
      this.#watchers.add(look)
      context.signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  async translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number> {
    this.#state.check(context)
    return Math.max(0, ...read.map(({ history, sequence }) => followTrail(this.#trails.get(history) ?? [], sequence)))
  }

  /** @param written what the call has written; undefined: only a local document */
  #committed(written: readonly { readonly id: string }[] | undefined): void {
    for (const look of [...this.#watchers]) look()
    this.#options.onCommit?.(written !== undefined, written?.some(({ id }) => id.startsWith(designPrefix)) ?? false)
  }

  async openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]> {
    this.#state.check(context)
    return fittingFirst(ids.map(id => this.#locals.get(id)?.document ?? null), local => local?.body?.length ?? 0)
  }

  async updateLocalDocument(
    request: UpdateLocalDocumentRequest, context: CallContext,
  ): Promise<UpdateLocalDocumentReply> {
    this.#state.check(context)
    const { id, revision, body, mustExist } = request
    const stored = this.#locals.get(id)?.document
    if (mustExist && (stored === undefined || stored.body === null)) return { kind: 'missing' }
    const now = this.#options.now?.() ?? ++this.#ticks
    const document: LocalDocument = { id, revision, body, stamp: Math.max(now, (stored?.stamp ?? 0) + 1) }
    this.#putLocal(document)
    this.#committed(undefined)
    return { kind: 'updated', document }
  }

  scanLocalDocuments(
    request: ScanLocalDocumentsRequest, context: CallContext,
  ): AsyncIterable<readonly LocalDocument[]> {
    const rows = [...this.#locals.values()].map(stored => stored.document)
      .filter(local => local.body !== null && inSpan(local.id, request))
    rows.sort((a, b) => request.descending ? compareBytes(b.id, a.id) : compareBytes(a.id, b.id))
    return this.#state.pages(rows, request.limit, context)
  }

  async purgeDocuments(
    { purges, checkpoint }: PurgeDocumentsRequest, context: CallContext,
  ): Promise<PurgeDocumentsReply> {
    this.#state.check(context)
    const before = this.#state.sequence
    const reply = purges.map(purge => {
      if (this.#state.purges.some(known => known.uuid === purge.uuid)) return []
      this.#state.purges = [...this.#state.purges, { ...purge, sequence: ++this.#state.purgeSequence }]
      this.#state.sequence++
      const before = this.#state.tree(purge.id)
      const purged = before.purge(purge.paths)
      if (purged === null) return []
      for (const revision of before.nodes().map(revisionOf)) {
        if (!purged.tree.has(revision)) this.#knownAttempts.delete(`${purge.id}/${revision}`)
      }
      if (purged.tree.isEmpty) {
        this.#state.documents.delete(purge.id)
        const { sequence, purgeSequence } = this.#state
        this.#purgedDocuments = [...this.#purgedDocuments, { id: purge.id, sequence, purgeSequence }]
      } else this.#state.documents.set(purge.id, { tree: purged.tree, sequence: this.#state.sequence })
      return purged.purged
    })
    if (checkpoint !== undefined) {
      advance(this.#state.purgesSeen, checkpoint)
    }
    if (this.#state.sequence > before) this.#committed(purges)
    return reply
  }

  scanPurges(since: number, context: CallContext): AsyncIterable<readonly PurgeRow[]> {
    return this.#state.pages(this.#state.purges.filter(({ sequence }) => sequence > since), undefined, context)
  }

  async trimPurges(through: number, context: CallContext): Promise<void> {
    this.#state.check(context)
    this.#state.purges = this.#state.purges.filter(({ sequence }) => sequence > through)
    const forgotten = this.#purgedDocuments.filter(({ purgeSequence }) => purgeSequence <= through)
    this.#purgesForgotten = forgotten.at(-1)?.sequence ?? this.#purgesForgotten
    this.#purgedDocuments = this.#purgedDocuments.slice(forgotten.length)
  }

  async timeSpans({ clear }: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]> {
    this.#state.check(context)
    if (clear) this.#timeSpans = []
    return this.#timeSpans
  }

  #open(id: string, tree: RevisionTree, revision: string): OpenedRevision {
    const node = tree.node(revision)
    const body = node && this.#state.body(node.bodyKey)
    if (node === undefined || body === undefined) return { kind: 'missing', revision }
    const purges = purgesOf(this.#purgesOf(id), revision)
    const attempt = tree.isLeaf(revision) ? this.#attempts.get(`${id}/${revision}`) : undefined
    return {
      kind: 'found',
      revision: {
        id, path: tree.path(revision)!, deleted: node.deleted, ...body, ...(purges.length > 0 && { purges }),
        ...(attempt !== undefined && { attempt }),
      },
    }
  }

  #purgesOf(id: string): PurgeRow[] {
    return this.#state.purges.filter(purge => purge.id === id)
  }

  #edit(edit: DocumentEdit, { partitionBytesMax }: UpdateDocumentsRequest): EditOutcome {
    const tree = this.#state.tree(edit.id)
    const decision = tree.decideEdit(edit)
    if (decision.kind === 'conflict') return this.#again(edit, tree) ?? decision
    if (decision.kind === 'tombstone') return decision
    const { parent } = decision
    if (partitionBytesMax !== undefined && !edit.deleted
      && this.upkeep.partition(edit.id.split(':', 1)[0]!).sizes.external >= partitionBytesMax) {
      return { kind: 'partition_overflow' }
    }
    const hash = parent === edit.parent ? edit.revisionHash
      : revisionHash({
        deleted: edit.deleted, parent, body: edit.body, attachments: attachmentDigests(edit.attachments),
      })
    const above = parent === null ? { start: 0, ids: [] } : tree.path(parent)!
    const path = { start: (parent === null ? 0 : parseRevision(parent).generation) + 1, ids: [hash, ...above.ids] }
    this.#merge({
      id: edit.id, path, deleted: edit.deleted, body: edit.body, ...editedAttachments(edit, path.start),
      ...(edit.attempt !== undefined && { attempt: edit.attempt }),
    })
    const revision = `${path.start}-${hash}`
    const purges = purgesOf(this.#purgesOf(edit.id), revision)
    return { kind: 'updated', path, ...(purges.length > 0 && { purges }) }
  }

  /** Answers an edit again when the same attempt made the revision before, it is still a leaf, and it has no rival. */
  #again({ id, parent, attempt }: DocumentEdit, tree: RevisionTree): EditOutcome | undefined {
    const own = attempt === undefined
      ? undefined
      : tree.leaves().find(({ revision }) => this.#attempts.get(`${id}/${revision}`) === attempt)
    if (own === undefined) return undefined
    const path = joinedToParent(tree.path(own.revision)!, parent)
    if (tree.hasSibling(path)) return undefined
    const purges = purgesOf(this.#purgesOf(id), own.revision)
    return { kind: 'updated', path, ...(purges.length > 0 && { purges }) }
  }

  /** Merges one revision, unless it was purged or is one branch too many (`StoreRevisionsReply`). */
  #storeRevision(revision: DocumentRevision, external: boolean): 'purged' | 'refused' | 'rival' | 'stored' {
    const { id, path, purges, attempt } = revision
    const name = `${path.start}-${path.ids[0]}`
    if (!external && isPurged(this.#purgesOf(id), name, purges)) return 'purged'
    const leaves = this.#state.tree(id).leafNodes().length
    const added = this.#state.tree(id).merge(path, { deleted: revision.deleted, bodyKey: null })
    if (external && added.result === 'new-branch' && leaves >= documentLeavesMax) return 'refused'
    this.#merge(revision, external)
    if (attempt === undefined || added.result === 'new-leaf') return 'stored'
    const key = `${id}/${name}`
    if (!this.#knownAttempts.has(key)) this.#knownAttempts.set(key, attempt)
    return this.#knownAttempts.get(key) !== attempt || added.tree.hasSibling(path) ? 'rival' : 'stored'
  }

  /** Merges one revision. The caller stems the tree. */
  #merge({ id, path, deleted, body, attachments, attempt }: DocumentRevision, external = false): void {
    const bodyKey = ++this.#bodyKey
    const { tree, result } = this.#state.tree(id).merge(path, { deleted, bodyKey })
    const completed = external && result === 'internal' ? tree.withBody(path, bodyKey) : null
    this.#state.documents.set(id, { tree: completed ?? tree, sequence: this.#state.documents.get(id)?.sequence ?? 0 })
    if (result === 'internal' && completed === null) return
    this.#state.bodies.set(bodyKey, { body, ...(attachments && { attachments }) })
    const key = `${id}/${path.start}-${path.ids[0]}`
    // A revision that was stemmed or purged may be stored again without the number of its attempt.
    if (attempt === undefined) this.#attempts.delete(key)
    else for (const attempts of [this.#attempts, this.#knownAttempts]) attempts.set(key, attempt)
  }

  /** Does the work of one call, and then stems the trees that it has changed. */
  #stemmed<T>(items: readonly { readonly id: string }[], revsLimit: number, work: () => T): T {
    const before = new Map(items.map(({ id }) => [id, this.#state.documents.get(id)]))
    const result = work()
    for (const [id, stored] of before) {
      if (this.#state.documents.get(id)?.tree === stored?.tree) continue
      const tree = this.#state.tree(id).stem(revsLimit)
      // A known revision may add ancestors that stemming removes again at once; then nothing has changed.
      if (Buffer.compare(tree.encode(), (stored?.tree ?? RevisionTree.empty).encode()) !== 0) {
        this.#state.documents.set(id, { tree, sequence: ++this.#state.sequence })
        this.#timeSpans = withChange(this.#timeSpans, this.#options.now?.() ?? timeSpanMin, this.#state.sequence)
      } else if (stored !== undefined) this.#state.documents.set(id, stored)
    }
    return result
  }

  #putLocal(document: LocalDocument): void {
    this.#locals.set(document.id, { document, sequence: ++this.#state.sequence })
  }
}

/** Orders two versions of a local document: by stamp, then revision, then body bytes. A deletion has the least body. */
function compareLocals(a: LocalDocument, b: LocalDocument): number {
  return a.stamp - b.stamp || a.revision - b.revision
    || Buffer.compare(a.body ?? Buffer.alloc(0), b.body ?? Buffer.alloc(0))
}

/** Records a checkpoint; the recorded sequence of a history never decreases. */
function advance(recorded: Map<string, number>, { history, sequence }: ReplicaCheckpoint): void {
  recorded.set(history, Math.max(sequence, recorded.get(history) ?? 0))
}

function inSpan(
  id: string,
  { start, end, descending }: { readonly start?: IdBound; readonly end?: IdBound; readonly descending: boolean },
): boolean {
  const direction = descending ? -1 : 1
  const behind = (bound: IdBound, sign: number): boolean => {
    const order = compareBytes(id, bound.id) * sign * direction
    return order > 0 || (order === 0 && bound.inclusive)
  }
  return (start === undefined || behind(start, 1)) && (end === undefined || behind(end, -1))
}

async function* failing(code: ReplicaErrorCode, message: string): AsyncGenerator<never> {
  throw new ReplicaError(code, message)
}

