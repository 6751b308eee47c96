import type { DocumentRevision, StoreRevisionsReply, StoreRevisionsRequest } from '@sectional/core'
import { documentLeavesMax, isPurged, noRivals, RevisionTree } from '@sectional/core'
import { supersedesLocal } from '../records/local-record.ts'
import type { DocumentView, WriteDraft } from '../writing/write-draft.ts'
import { inIdOrder } from './id-order.ts'

/**
 * Merges revisions that other replicas or clusters decided. Known revisions change nothing. Only a client's revision is
 * ever refused (`StoreRevisionsReply.refused`).
 */
export function decideRevisions(
  draft: WriteDraft, { revisions, locals = [], revsLimit, checkpoint, trail, external }: StoreRevisionsRequest,
): StoreRevisionsReply {
  const rivals: number[] = []
  const refused: number[] = []
  const leavesMax = external === true ? documentLeavesMax : Number.POSITIVE_INFINITY
  let merging: DocumentMerge | undefined
  for (const index of inIdOrder(revisions)) {
    const { id, path, purges } = revisions[index]!
    if (draft.anyPurges && external !== true && isPurged(draft.purges(id), `${path.start}-${path.ids[0]}`, purges)) {
      continue
    }
    if (merging?.id !== id) {
      merging?.finish(revsLimit)
      merging = new DocumentMerge(draft, id)
    }
    const added = merging.add(revisions[index]!, leavesMax)
    if (added === 'rival') rivals.push(index)
    else if (added === 'refused') refused.push(index)
  }
  merging?.finish(revsLimit)
  draft.stemDocuments(revsLimit)
  for (const local of locals) {
    const existing = draft.localDocument(local.id)
    if (existing === undefined || supersedesLocal(local, existing)) draft.putLocal(local)
  }
  if (checkpoint !== undefined) draft.putCheckpoint(checkpoint.history, checkpoint.sequence)
  if (trail !== undefined) draft.extendTrail(trail)
  if (rivals.length === 0 && refused.length === 0) return noRivals
  return { rivals, ...(refused.length > 0 && { refused }) }
}

/** The merge of all revisions of one document that one call brings. */
class DocumentMerge {
  readonly id: string
  readonly #draft: WriteDraft
  readonly #before: RevisionTree
  /** The tree with all revisions that were added. It is not stemmed yet. */
  #tree: RevisionTree
  /** Whether the draft has a new revision of this document. */
  #drafted = false
  /** Whether the last change of the tree only added ancestors of a known revision, which the draft lacks. */
  #onlyAncestry = false

  constructor(draft: WriteDraft, id: string) {
    this.id = id
    this.#draft = draft
    this.#before = this.#tree = draft.document(id)?.tree ?? RevisionTree.empty
  }

  /** Merges one revision, unless it would be a new branch beside `leavesMax` leaves. */
  add(revision: DocumentRevision, leavesMax: number): 'stored' | 'rival' | 'refused' {
    const { path, deleted, body, attachments, attempt } = revision
    const { tree, result } = this.#tree.merge(path, { deleted, bodyKey: this.#draft.nextSequence })
    if (result === 'new-branch' && tree.leafNodes().length > leavesMax) return 'refused'
    const added = attempt !== undefined && result !== 'new-leaf'
      && hasRival(revision, tree, this.#draft.document(this.id)) ? 'rival' : 'stored'
    if (tree === this.#tree) return added
    this.#tree = tree
    this.#onlyAncestry = result === 'internal'
    if (result !== 'internal') {
      this.#draft.putRevision(this.id, tree, { body, ...(attachments && { attachments }) }, attempt)
      this.#drafted = true
    }
    return added
  }

  /** Gives the draft the ancestors of known revisions, unless stemming removes them again at once. */
  finish(revsLimit: number): void {
    if (!this.#onlyAncestry) return
    const unchanged = !this.#drafted
      && Buffer.compare(this.#tree.stem(revsLimit).encode(), this.#before.encode()) === 0
    if (!unchanged) this.#draft.putAncestry(this.id, this.#tree)
  }
}

/** @param document the document before the merge */
function hasRival(
  { path, attempt }: DocumentRevision, merged: RevisionTree, document: DocumentView | undefined,
): boolean {
  const known = document?.leaves.find(leaf => leaf.revision === `${path.start}-${path.ids[0]}`)
  return (known?.attempt !== undefined && known.attempt !== attempt) || merged.hasSibling(path)
}
