import type { RevisionTree } from '@sectional/core'
import { revisionOf } from '@sectional/core'
import type { WriteBatch } from '@sectional/runtime'
import { blobKeys } from './key-layout.ts'
import type { ShardKeys } from './key-layout.ts'
import { deleteBody, furtherChunks, putBody, storedBody } from './records/body-record.ts'
import type { RevisionContent, StoredBody } from './records/body-record.ts'
import { ByteWriter } from './records/byte-writer.ts'
import { encodeLocalChange } from './records/change-record.ts'
import { sealBytes } from './records/damaged-record.ts'
import { DocumentRecord } from './records/document-record.ts'
import { encodeLocal } from './records/local-record.ts'
import type { LocalRecord } from './records/local-record.ts'
import { encodeState } from './records/state-record.ts'
import type { ReplicaState } from './records/state-record.ts'
import type { StoredLeaf } from './records/stored-leaves.ts'
import { encodeCheckpoint } from './shard-records.ts'

/** What a decision needs to know of a document, stored or drafted. */
export interface DocumentView {
  readonly tree: RevisionTree
  /** Winner first. */
  readonly leaves: readonly [StoredLeaf, ...StoredLeaf[]]
}

/** What the draft stands on: committed records and those of batches in flight. */
export interface DraftBase {
  document(id: string): DocumentRecord | undefined
  localDocument(id: string): LocalRecord | undefined
  checkpoint(history: string): number
  /** Records of a body besides its first one. */
  bodyChunks(sequence: number): number
}

const noBytes = new Uint8Array(0)

interface NewBody { readonly sequence: number; readonly content: RevisionContent; readonly stored: StoredBody }

class DraftDocument implements DocumentView {
  readonly base: DocumentRecord | undefined
  readonly bodies: NewBody[] = []
  tree: RevisionTree
  leaves: readonly [StoredLeaf, ...StoredLeaf[]]
  sequence: number

  constructor(base: DocumentRecord | undefined, tree: RevisionTree, leaves: readonly [StoredLeaf, ...StoredLeaf[]], sequence: number) {
    this.base = base
    this.tree = tree
    this.leaves = leaves
    this.sequence = sequence
  }
}

/** The records that one call is about to write: decided against a base, then put into a batch at once. */
export class WriteDraft {
  readonly #base: DraftBase
  readonly #state: { -readonly [Name in keyof ReplicaState]: ReplicaState[Name] }
  readonly #documents = new Map<string, DraftDocument>()
  readonly #locals = new Map<string, { readonly base: LocalRecord | undefined; readonly record: LocalRecord }>()
  /** Where bodies lie that go away -> their further chunks. */
  readonly #cutBodies = new Map<number, number>()
  readonly #largeBodies = new Map<number, number>()
  #checkpoint: { readonly history: string; readonly sequence: number } | undefined

  constructor(base: DraftBase, state: ReplicaState) {
    this.#base = base
    this.#state = { ...state }
  }

  isEmpty(): boolean {
    return this.#documents.size === 0 && this.#locals.size === 0 && this.#checkpoint === undefined
  }

  /** How many documents, local ones included, the draft writes. */
  get size(): number {
    return this.#documents.size + this.#locals.size
  }

  document(id: string): DocumentView | undefined {
    return this.#documents.get(id) ?? this.#base.document(id)
  }

  /** The sequence of the next revision; `putRevision` takes it. */
  get nextSequence(): number {
    return this.#state.sequence + 1
  }

  /**
   * Adds a revision whose body lies at `nextSequence`.
   * @param tree the document's tree with it
   */
  putRevision(id: string, tree: RevisionTree, content: RevisionContent): void {
    const document = this.#put(id, tree, content.body.length)
    const stored = storedBody(content)
    document.bodies.push({ sequence: document.sequence, content, stored })
    const chunks = furtherChunks(stored.bytes.length)
    if (chunks > 0) this.#largeBodies.set(document.sequence, chunks)
  }

  /** Removes bodies whose revisions the trees of this draft have forgotten. */
  dropBodies(sequences: readonly number[]): void {
    for (const sequence of sequences) this.#cutBodies.set(sequence, this.#largeBodies.get(sequence) ?? this.#base.bodyChunks(sequence))
  }

  /** Adds ancestors of known revisions. */
  putAncestry(id: string, tree: RevisionTree): void {
    this.#put(id, tree, 0)
  }

  #put(id: string, tree: RevisionTree, bodyBytes: number): DraftDocument {
    const sequence = ++this.#state.sequence
    const drafted = this.#documents.get(id)
    const base = drafted === undefined ? this.#base.document(id) : drafted.base
    const leaves = leavesOf(tree, drafted?.leaves ?? base?.leaves ?? [], sequence, bodyBytes)
    if (drafted === undefined) {
      const document = new DraftDocument(base, tree, leaves, sequence)
      this.#documents.set(id, document)
      return document
    }
    drafted.tree = tree
    drafted.leaves = leaves
    drafted.sequence = sequence
    return drafted
  }

  localDocument(id: string): LocalRecord | undefined {
    return this.#locals.get(id)?.record ?? this.#base.localDocument(id)
  }

  putLocal(local: Omit<LocalRecord, 'sequence'>): void {
    const drafted = this.#locals.get(local.id)
    const base = drafted === undefined ? this.#base.localDocument(local.id) : drafted.base
    this.#locals.set(local.id, { base, record: { ...local, sequence: ++this.#state.sequence } })
  }

  /** Never lowers what is recorded. */
  putCheckpoint(history: string, sequence: number): void {
    if (sequence > this.#base.checkpoint(history)) this.#checkpoint = { history, sequence }
  }

  /** Puts everything into the batch and gives what the next draft stands on. */
  fill(batch: WriteBatch, keys: ShardKeys): FilledDraft {
    const state = this.#state
    const writer = new ByteWriter(sealBytes)
    const changeWriter = new ByteWriter()
    const documents: [string, DocumentRecord][] = []
    for (const [id, draft] of this.#documents) documents.push([id, this.#fillDocument(batch, keys, writer, changeWriter, id, draft)])
    for (const [sequence, chunks] of this.#cutBodies) deleteBody(batch, keys, sequence, chunks)
    const locals: LocalRecord[] = []
    for (const { base, record } of this.#locals.values()) {
      if (base !== undefined) batch.delete(keys.change(base.sequence))
      batch.put(keys.localDocument(record.id), encodeLocal(record))
      batch.put(keys.change(record.sequence), encodeLocalChange(changeWriter, record.id))
      state.activeBytes += (record.body?.length ?? 0) - (base?.body?.length ?? 0)
      locals.push(record)
    }
    if (this.#checkpoint !== undefined) batch.put(keys.checkpoint(this.#checkpoint.history), encodeCheckpoint(this.#checkpoint.sequence))
    if (this.size > 0) batch.put(keys.state(), encodeState(state))
    return { state, documents, locals, largeBodies: this.#largeBodies, checkpoint: this.#checkpoint }
  }

  #fillDocument(batch: WriteBatch, keys: ShardKeys, writer: ByteWriter, changeWriter: ByteWriter, id: string, draft: DraftDocument): DocumentRecord {
    const { base, leaves, sequence } = draft
    const { record, bytes, change } = DocumentRecord.encode(writer, changeWriter, id, sequence, leaves, draft.tree)
    if (base !== undefined) batch.delete(keys.change(base.sequence))
    batch.put(keys.document(id), bytes)
    batch.put(keys.change(sequence), change)
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
    return record
  }
}

export interface FilledDraft {
  readonly state: ReplicaState
  readonly documents: readonly (readonly [string, DocumentRecord])[]
  readonly locals: readonly LocalRecord[]
  /** Where bodies of several records lie -> how many besides the first. */
  readonly largeBodies: ReadonlyMap<number, number>
  readonly checkpoint: { readonly history: string; readonly sequence: number } | undefined
}

export function activeBytes(record: DocumentRecord | undefined): number {
  return record === undefined ? 0 : record.encodedBytes + record.bodyBytes
}

function leavesOf(tree: RevisionTree, before: readonly StoredLeaf[], sequence: number, bodyBytes: number): [StoredLeaf, ...StoredLeaf[]] {
  const leaves = tree.leafNodes().map((node): StoredLeaf => {
    const revision = revisionOf(node)
    if (node.bodyKey === sequence) return { revision, deleted: node.deleted, bodySequence: sequence, bodyBytes }
    const known = before.find(leaf => leaf.revision === revision)
    if (known === undefined) throw new Error(`leaf ${revision} has no body`)
    return known
  })
  return leaves as [StoredLeaf, ...StoredLeaf[]]
}
