import type {
  PartitionInfo, Purge, RevisionNode, RevisionTree, TimeSpan, TrailExtension, TrailPoint,
} from '@sectional/core'
import { partitionOf, revisionOf, withChange } from '@sectional/core'
import { sealBytes } from '@sectional/runtime'
import type { WriteBatch } from '@sectional/runtime'
import { blobKeys } from '../records/key-layout.ts'
import type { ShardKeys } from '../records/key-layout.ts'
import { deleteBody, furtherChunks, putBody, storedBody } from '../records/body-record.ts'
import type { RevisionContent, StoredBody } from '../records/body-record.ts'
import { ByteWriter } from '../records/byte-writer.ts'
import { encodeLocalChange, encodePurgedChange } from '../records/change-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { encodeLocal } from '../records/local-record.ts'
import type { LocalRecord } from '../records/local-record.ts'
import { encodePartition, withDocument } from '../records/partition-record.ts'
import { encodePurgedId, encodePurges } from '../records/purge-records.ts'
import type { StoredPurge } from '../records/purge-records.ts'
import { encodeState } from '../records/state-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'
import { encodeTimeSpans } from '../records/time-record.ts'
import { encodeTrail } from '../records/trail-record.ts'
import { encodeCheckpoint } from '../reading/shard-records.ts'

/** The state of a stored or drafted document that a decision reads. */
export interface DocumentView {
  readonly tree: RevisionTree
  /** Winner first. */
  readonly leaves: readonly [StoredLeaf, ...StoredLeaf[]]
}

/** The records that a draft is based on: committed ones and those of batches in flight. */
export interface DraftBase {
  document(id: string): DocumentRecord | undefined
  localDocument(id: string): LocalRecord | undefined
  checkpoint(history: string): number
  /** Returns the trail to write now; undefined when the extension is held. */
  extendTrail(extension: TrailExtension): readonly TrailPoint[] | undefined
  purges(id: string): readonly StoredPurge[]
  purgeCheckpoint(history: string): number
  timeSpans(): readonly TimeSpan[]
  /** Whether the shard keeps counts and sizes of partitions. */
  readonly partitioned: boolean
  partition(partition: string): PartitionInfo
  /** Returns how many records a body takes after its first one. */
  bodyChunks(sequence: number): number
  /** Returns the attempt of a revision whose record has none; undefined when it is not known (`KnownAttempts`). */
  knownAttempt(id: string, revision: string): number | undefined
  noteAttempt(id: string, revision: string, attempt: number): void
  forgetAttempt(id: string, revision: string): void
}

const noBytes = new Uint8Array(0)

interface NewBody {
  readonly sequence: number
  readonly revision: string
  readonly content: RevisionContent
  readonly stored: StoredBody
  /** The attempt that made the revision (`DocumentEdit.attempt`). */
  readonly attempt: number | undefined
}

/**
 * The value of a document that was purged completely. Compared by identity, so that a later purge of the same document
 * is not taken for this one.
 */
export class PurgedDocument {
  readonly id: string

  constructor(id: string) {
    this.id = id
  }
}

class DraftDocument implements DocumentView {
  readonly base: DocumentRecord | undefined
  readonly bodies: NewBody[] = []
  sequence = 0
  #tree: RevisionTree
  /** The leaves of an earlier tree of this draft, or of the tree before the draft. */
  #knownLeaves: readonly StoredLeaf[]
  /** The leaves of `tree`; undefined when they were not requested since the tree changed. */
  #leaves: readonly [StoredLeaf, ...StoredLeaf[]] | undefined
  /** The number of entries of `bodies` that `#knownLeaves` includes. */
  #knownBodies = 0

  constructor(base: DocumentRecord | undefined, tree: RevisionTree) {
    this.base = base
    this.#tree = tree
    this.#knownLeaves = base?.leaves ?? []
  }

  get tree(): RevisionTree { return this.#tree }

  set tree(tree: RevisionTree) {
    this.#tree = tree
    this.#leaves = undefined
  }

  /** Computed when requested, because one call can bring thousands of branches of one document. */
  get leaves(): readonly [StoredLeaf, ...StoredLeaf[]] {
    if (this.#leaves !== undefined) return this.#leaves
    const leaves = leavesOf(this.#tree, this.#knownLeaves, this.bodies.slice(this.#knownBodies))
    this.#knownLeaves = leaves
    this.#knownBodies = this.bodies.length
    return this.#leaves = leaves
  }
}

/** The records that one call will write. They are decided against a base and then put into a batch at once. */
export class WriteDraft {
  readonly #base: DraftBase
  /** The counters after the draft; changed by each operation. */
  readonly #state: { -readonly [Name in keyof ReplicaState]: ReplicaState[Name] }
  readonly #documents = new Map<string, DraftDocument>()
  /** Local documents by id, each with the record that it replaces. */
  readonly #locals = new Map<string, { readonly base: LocalRecord | undefined; readonly record: LocalRecord }>()
  /** Sequence of each body to delete -> the number of its records after the first. */
  readonly #cutBodies = new Map<number, number>()
  readonly #largeBodies = new Map<number, number>()
  /** Documents that a purge removed completely. */
  readonly #removed = new Map<string, DocumentRecord>()
  readonly #purges = new Map<string, readonly StoredPurge[]>()
  /** Purge sequence -> the id of the purged document; null deletes the record. */
  readonly #purgeLog = new Map<number, string | null>()
  /** Sequence -> id of the document that was purged completely there; null deletes the row. */
  readonly #purgedRows = new Map<number, string | null>()
  #checkpoint: { readonly history: string; readonly sequence: number } | undefined
  #trail: { readonly history: string; readonly points: readonly TrailPoint[] } | undefined
  #purgeCheckpoint: { readonly history: string; readonly sequence: number } | undefined
  #timeSpans: readonly TimeSpan[] | undefined
  #dropsReplaced = false
  /** The sequence before the draft. */
  readonly #firstSequence: number

  constructor(base: DraftBase, state: ReplicaState) {
    this.#base = base
    this.#state = { ...state }
    this.#firstSequence = state.sequence
  }

  isEmpty(): boolean {
    return this.#documents.size === 0 && this.#locals.size === 0 && this.#purges.size === 0
      && this.#checkpoint === undefined && this.#trail === undefined && this.#purgeCheckpoint === undefined
      && this.#timeSpans === undefined && !this.#dropsReplaced
  }

  /** The number of documents that the draft writes, including local documents. */
  get size(): number {
    return this.#documents.size + this.#locals.size
  }

  document(id: string): DocumentView | undefined {
    if (this.#removed.has(id)) return undefined
    return this.#documents.get(id) ?? this.#base.document(id)
  }

  /** Returns the attempt that made a known revision; undefined when it is not known. */
  attemptOf(id: string, revision: string): number | undefined {
    const made = this.#documents.get(id)?.bodies.find(body => body.revision === revision)
      ?? this.#base.document(id)?.leaves.find(leaf => leaf.revision === revision)
    return made?.attempt ?? this.#base.knownAttempt(id, revision)
  }

  /** Remembers the attempt of a known revision. */
  noteAttempt(id: string, revision: string, attempt: number): void {
    this.#base.noteAttempt(id, revision, attempt)
  }

  /** The sequence that the next call of `putRevision` will use. */
  get nextSequence(): number {
    return this.#state.sequence + 1
  }

  /**
   * Adds a revision whose body is stored at `nextSequence`.
   * @param tree the document's tree including the revision
   * @param revision its name
   * @param attempt the attempt that made the revision (`DocumentEdit.attempt`)
   */
  putRevision(
    id: string, tree: RevisionTree, revision: string, content: RevisionContent, attempt: number | undefined,
  ): void {
    const document = this.#put(id, tree)
    const stored = storedBody(content)
    document.bodies.push({ sequence: document.sequence, revision, content, stored, attempt })
    const chunks = furtherChunks(stored.bytes.length)
    if (chunks > 0) this.#largeBodies.set(document.sequence, chunks)
  }

  /**
   * Stems the trees of the drafted documents (`RevisionTree.stem`) and deletes the bodies of the removed revisions.
   * A call stems once, after all its revisions: to stem a large tree after each of them would take seconds.
   */
  stemDocuments(limit: number): void {
    for (const document of this.#documents.values()) {
      const { tree } = document
      const stemmed = tree.stem(limit)
      if (stemmed === tree) continue
      document.tree = stemmed
      const kept = new Set(stemmed.bodyKeys())
      this.dropBodies(tree.bodyKeys().filter(sequence => !kept.has(sequence)))
    }
  }

  /** Deletes bodies of revisions that the trees of this draft no longer contain. */
  dropBodies(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      this.#cutBodies.set(sequence, this.#largeBodies.get(sequence) ?? this.#base.bodyChunks(sequence))
    }
  }

  /** Whether any purge was ever recorded in this shard. Most shards have none and then need no lookup. */
  get anyPurges(): boolean {
    return this.#state.purgeSequence > 0
  }

  purges(id: string): readonly StoredPurge[] {
    return this.#purges.get(id) ?? this.#base.purges(id)
  }

  /**
   * Records a purge.
   * @param tree the tree that remains of the document; null when the purge changed nothing
   */
  putPurge(purge: Purge, tree: RevisionTree | null): void {
    const sequence = ++this.#state.purgeSequence
    const changeSequence = tree?.isEmpty ? this.nextSequence : 0
    this.#purges.set(purge.id, [...this.purges(purge.id), { ...purge, sequence, changeSequence }])
    this.#purgeLog.set(sequence, purge.id)
    for (const node of tree === null ? [] : this.document(purge.id)?.tree.nodes() ?? []) {
      const revision = revisionOf(node)
      if (!tree!.has(revision)) this.#base.forgetAttempt(purge.id, revision)
    }
    if (tree !== null && !tree.isEmpty) return void this.#put(purge.id, tree)
    // A purge takes a sequence even when it changed nothing, so that cached answers are recognized as outdated.
    this.#state.sequence++
    if (tree === null) return
    this.#purgedRows.set(changeSequence, purge.id)
    const drafted = this.#documents.get(purge.id)
    const base = drafted === undefined ? this.#base.document(purge.id) : drafted.base
    this.#documents.delete(purge.id)
    if (base !== undefined) this.#removed.set(purge.id, base)
  }

  /** Deletes records of purges. */
  trimPurges(purges: readonly { readonly sequence: number; readonly id: string }[]): void {
    for (const { sequence, id } of purges) {
      const known = this.purges(id)
      const { changeSequence = 0 } = known.find(purge => purge.sequence === sequence) ?? {}
      this.#purges.set(id, known.filter(purge => purge.sequence !== sequence))
      this.#purgeLog.set(sequence, null)
      if (changeSequence > 0) this.#purgedRows.set(changeSequence, null)
      this.#state.purgesForgotten = Math.max(this.#state.purgesForgotten, changeSequence)
    }
  }

  /** Records the checkpoint unless a higher one is recorded. */
  putPurgeCheckpoint(history: string, sequence: number): void {
    if (sequence > this.#base.purgeCheckpoint(history)) this.#purgeCheckpoint = { history, sequence }
  }

  get partitioned(): boolean {
    return this.#base.partitioned
  }

  /** Returns the value that was committed or staged before this draft began. */
  partition(partition: string): PartitionInfo {
    return this.#base.partition(partition)
  }

  clearTimeSpans(): void {
    this.#timeSpans = []
  }

  /** Drops the bodies of a document's replaced revisions. The changes log does not change. */
  compactDocument(id: string): void {
    const record = this.#base.document(id)
    if (record === undefined || this.#documents.has(id)) return
    const { tree, released } = record.tree.releaseInnerBodies()
    if (released.length === 0) return
    const document = new DraftDocument(record, tree)
    document.sequence = record.sequence
    this.#documents.set(id, document)
    this.dropBodies(released)
  }

  /** Subtracts the bytes of replaced revisions that a compaction has dropped. */
  dropReplacedBytes(bytes: number): void {
    this.#dropsReplaced = true
    this.#state.replacedBytes = Math.max(0, this.#state.replacedBytes - bytes)
  }

  /** Replaces the document's tree by one with more ancestors of known revisions. */
  putAncestry(id: string, tree: RevisionTree): void {
    this.#put(id, tree)
  }

  #put(id: string, tree: RevisionTree): DraftDocument {
    let document = this.#documents.get(id)
    if (document === undefined) {
      document = new DraftDocument(this.#removed.has(id) ? undefined : this.#base.document(id), tree)
      this.#documents.set(id, document)
    }
    document.tree = tree
    document.sequence = ++this.#state.sequence
    return document
  }

  localDocument(id: string): LocalRecord | undefined {
    return this.#locals.get(id)?.record ?? this.#base.localDocument(id)
  }

  putLocal(local: Omit<LocalRecord, 'sequence'>): void {
    const drafted = this.#locals.get(local.id)
    const base = drafted === undefined ? this.#base.localDocument(local.id) : drafted.base
    this.#locals.set(local.id, { base, record: { ...local, sequence: ++this.#state.sequence } })
  }

  /** Records the checkpoint unless a higher one is recorded. */
  putCheckpoint(history: string, sequence: number): void {
    if (sequence > this.#base.checkpoint(history)) this.#checkpoint = { history, sequence }
  }

  extendTrail(extension: TrailExtension): void {
    const points = this.#base.extendTrail(extension)
    if (points !== undefined) this.#trail = { history: extension.history, points }
  }

  /**
   * Puts all records into the batch and returns the state on which the next draft is based.
   * @param now milliseconds since 1970
   */
  fill(batch: WriteBatch, keys: ShardKeys, now: number): FilledDraft {
    const state = this.#state
    const partitions = new Map<string, PartitionInfo>()
    const writer = new ByteWriter(sealBytes)
    const changeWriter = new ByteWriter(sealBytes)
    const documents: [string, DocumentRecord | PurgedDocument][] = []
    for (const [id, base] of this.#removed) {
      this.#fillRemoval(batch, keys, id, base)
      this.#countPartition(partitions, id, base, null)
      if (!this.#documents.has(id)) documents.push([id, new PurgedDocument(id)])
    }
    for (const [id, draft] of this.#documents) {
      const record = this.#fillDocument(batch, keys, writer, changeWriter, id, draft)
      this.#countPartition(partitions, id, draft.base ?? null, record)
      documents.push([id, record])
    }
    for (const [partition, info] of partitions) batch.put(keys.partition(partition), encodePartition(info))
    this.#fillPurges(batch, keys, changeWriter)
    for (const [sequence, chunks] of this.#cutBodies) deleteBody(batch, keys, sequence, chunks)
    const locals: LocalRecord[] = []
    for (const { base, record } of this.#locals.values()) {
      if (base !== undefined) batch.delete(keys.change(base.sequence))
      batch.put(keys.localDocument(record.id), encodeLocal(record))
      batch.put(keys.change(record.sequence), encodeLocalChange(changeWriter, record.id))
      state.activeBytes += (record.body?.length ?? 0) - (base?.body?.length ?? 0)
      locals.push(record)
    }
    if (this.#checkpoint !== undefined) {
      batch.put(keys.checkpoint(this.#checkpoint.history), encodeCheckpoint(this.#checkpoint.sequence))
    }
    if (this.#trail !== undefined) batch.put(keys.trail(this.#trail.history), encodeTrail(this.#trail.points))
    const { sequence } = state
    const timeSpans = this.#fillTimes(batch, keys, now)
    if (this.size > 0 || this.#removed.size > 0 || this.#purges.size > 0 || this.#dropsReplaced) {
      batch.putLatest(keys.state(), encodeState(state))
    }
    return {
      state, documents, locals, largeBodies: this.#largeBodies, checkpoint: this.#checkpoint, trail: this.#trail,
      purges: this.#purges,
      purgeCheckpoint: this.#purgeCheckpoint, partitions, timeSpans, changed: sequence > this.#firstSequence,
    }
  }

  #fillPurges(batch: WriteBatch, keys: ShardKeys, changeWriter: ByteWriter): void {
    for (const [sequence, id] of this.#purgedRows) {
      if (id === null) batch.delete(keys.change(sequence))
      else batch.put(keys.change(sequence), encodePurgedChange(changeWriter, id))
    }
    for (const [id, purges] of this.#purges) {
      if (purges.length === 0) batch.delete(keys.purgesOf(id))
      else batch.put(keys.purgesOf(id), encodePurges(purges))
    }
    for (const [sequence, id] of this.#purgeLog) {
      if (id === null) batch.delete(keys.purge(sequence))
      else batch.put(keys.purge(sequence), encodePurgedId(id))
    }
    if (this.#purgeCheckpoint !== undefined) {
      batch.put(keys.purgeCheckpoint(this.#purgeCheckpoint.history), encodeCheckpoint(this.#purgeCheckpoint.sequence))
    }
  }

  /** Returns the new time spans; undefined when they did not change. */
  #fillTimes(batch: WriteBatch, keys: ShardKeys, now: number): readonly TimeSpan[] | undefined {
    const before = this.#base.timeSpans()
    const kept = this.#timeSpans ?? before
    const spans = this.#state.sequence > this.#firstSequence ? withChange(kept, now, this.#firstSequence + 1) : kept
    if (spans === before) return undefined
    batch.put(keys.timeSpans(), encodeTimeSpans(spans))
    return spans
  }

  #fillRemoval(batch: WriteBatch, keys: ShardKeys, id: string, base: DocumentRecord): void {
    batch.delete(keys.change(base.sequence))
    batch.delete(keys.document(id))
    const state = this.#state
    state[base.deleted ? 'deletedCount' : 'documentCount']--
    state.activeBytes -= activeBytes(base)
    state.externalBytes -= base.bodyBytes
  }

  #countPartition(
    partitions: Map<string, PartitionInfo>, id: string, before: DocumentRecord | null, after: DocumentRecord | null,
  ): void {
    const partition = this.#base.partitioned ? partitionOf(id) : null
    if (partition !== null) {
      partitions.set(
        partition, withDocument(partitions.get(partition) ?? this.#base.partition(partition), before, after),
      )
    }
  }

  #fillDocument(
    batch: WriteBatch, keys: ShardKeys, writer: ByteWriter, changeWriter: ByteWriter, id: string, draft: DraftDocument,
  ): DocumentRecord {
    const { base, leaves, sequence } = draft
    const { record, bytes, change } = DocumentRecord.encode(writer, changeWriter, id, sequence, leaves, draft.tree)
    if (base?.sequence !== sequence) {
      if (base !== undefined) batch.delete(keys.change(base.sequence))
      batch.put(keys.change(sequence), change)
    }
    batch.put(keys.document(id), bytes)
    for (const { sequence: bodySequence, content, stored } of draft.bodies) {
      putBody(batch, keys, bodySequence, stored)
      for (const { blob } of content.attachments ?? []) {
        batch.put(blobKeys.reference(blob, { prefix: keys.prefix, sequence: bodySequence }), noBytes)
      }
    }
    const state = this.#state
    if (base !== undefined) state[base.deleted ? 'deletedCount' : 'documentCount']--
    state[record.deleted ? 'deletedCount' : 'documentCount']++
    state.activeBytes += activeBytes(record) - activeBytes(base)
    state.externalBytes += record.bodyBytes - (base?.bodyBytes ?? 0)
    if (base !== undefined) {
      const kept = new Set(leaves)
      for (const leaf of base.leaves) {
        if (kept.has(leaf)) continue
        this.#noteReplaced(id, leaf.revision, leaf.attempt)
        if (!this.#cutBodies.has(leaf.bodySequence)) state.replacedBytes += leaf.bodyBytes
      }
    }
    if (draft.bodies.length > 1) this.#noteReplacedInside(id, draft)
    return record
  }

  /** Remembers the attempt of a revision that is no leaf any more. */
  #noteReplaced(id: string, revision: string, attempt: number | undefined): void {
    if (attempt !== undefined && !this.#purges.has(id)) this.#base.noteAttempt(id, revision, attempt)
  }

  /** Remembers the attempts of revisions that the draft both adds and replaces. */
  #noteReplacedInside(id: string, { leaves, bodies }: DraftDocument): void {
    const kept = new Set(leaves.map(leaf => leaf.bodySequence))
    for (const { sequence, revision, attempt } of bodies) {
      if (!kept.has(sequence)) this.#noteReplaced(id, revision, attempt)
    }
  }
}

export interface FilledDraft {
  readonly state: ReplicaState
  readonly documents: readonly (readonly [string, DocumentRecord | PurgedDocument])[]
  readonly locals: readonly LocalRecord[]
  /** Sequence of a body that takes several records -> the number of its records after the first. */
  readonly largeBodies: ReadonlyMap<number, number>
  readonly checkpoint: { readonly history: string; readonly sequence: number } | undefined
  readonly trail: { readonly history: string; readonly points: readonly TrailPoint[] } | undefined
  readonly purges: ReadonlyMap<string, readonly StoredPurge[]>
  readonly purgeCheckpoint: { readonly history: string; readonly sequence: number } | undefined
  readonly partitions: ReadonlyMap<string, PartitionInfo>
  readonly timeSpans: readonly TimeSpan[] | undefined
  /** Whether the sequence has increased. */
  readonly changed: boolean
}

export function activeBytes(record: DocumentRecord | undefined): number {
  return record === undefined ? 0 : record.encodedBytes + record.bodyBytes
}

function leavesOf(
  tree: RevisionTree, before: readonly StoredLeaf[], added: readonly NewBody[],
): [StoredLeaf, ...StoredLeaf[]] {
  const bodies = new Map(added.map(body => [body.sequence, body]))
  // Both lists begin with the winner and have the same order, so most leaves are found in one pass, even when there are
  // many.
  let next = 0
  const leaves = tree.leafNodes().map((node): StoredLeaf => {
    const body = node.bodyKey === null ? undefined : bodies.get(node.bodyKey)
    if (body !== undefined) return newLeaf(node, body)
    while (next < before.length && before[next]!.bodySequence !== node.bodyKey) next++
    const known = before[next++] ?? before.find(leaf => leaf.revision === revisionOf(node))
    if (known === undefined) throw new Error(`leaf ${revisionOf(node)} has no body`)
    return known
  })
  return leaves as [StoredLeaf, ...StoredLeaf[]]
}

function newLeaf(
  node: RevisionNode, { sequence: bodySequence, revision, content: { body }, attempt }: NewBody,
): StoredLeaf {
  const leaf = { revision, deleted: node.deleted, bodySequence, bodyBytes: body.length }
  return attempt === undefined ? leaf : { ...leaf, attempt }
}
