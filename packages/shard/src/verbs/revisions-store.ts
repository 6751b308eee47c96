import type { DocumentRevision, StoreRevisionsReply, StoreRevisionsRequest } from '@sectional/core'
import { isPurged, noRivals, RevisionTree } from '@sectional/core'
import { supersedesLocal } from '../records/local-record.ts'
import type { DocumentView, WriteDraft } from '../writing/write-draft.ts'
import { inIdOrder } from './id-order.ts'
import { stem } from './stem.ts'

/** Merges revisions that other replicas or clusters decided. They are never refused; known revisions change nothing. */
export function decideRevisions(
  draft: WriteDraft, { revisions, locals = [], revsLimit, checkpoint, trail, external }: StoreRevisionsRequest,
): StoreRevisionsReply {
  const rivals: number[] = []
  for (const index of inIdOrder(revisions)) {
    const { id, path, purges } = revisions[index]!
    if (draft.anyPurges && external !== true && isPurged(draft.purges(id), `${path.start}-${path.ids[0]}`, purges)) {
      continue
    }
    if (mergeRevision(draft, revisions[index]!, revsLimit)) rivals.push(index)
  }
  for (const local of locals) {
    const existing = draft.localDocument(local.id)
    if (existing === undefined || supersedesLocal(local, existing)) draft.putLocal(local)
  }
  if (checkpoint !== undefined) draft.putCheckpoint(checkpoint.history, checkpoint.sequence)
  if (trail !== undefined) draft.extendTrail(trail)
  return rivals.length === 0 ? noRivals : { rivals }
}

/** Merges one revision. Returns true when it has a rival here (`StoreRevisionsReply`). */
function mergeRevision(draft: WriteDraft, revision: DocumentRevision, revsLimit: number): boolean {
  const { id, path, deleted, body, attachments, attempt } = revision
  const document = draft.document(id)
  const before = document?.tree ?? RevisionTree.empty
  const { tree: merged, result } = before.merge(path, { deleted, bodyKey: draft.nextSequence })
  const rivalled = attempt !== undefined && result !== 'new-leaf' && hasRival(revision, merged, document)
  if (merged === before) return rivalled
  const { tree, cut } = stem(merged, revsLimit)
  if (result !== 'internal') draft.putRevision(id, tree, { body, ...(attachments && { attachments }) }, attempt)
  // A known revision may add ancestors, but stemming may also remove these again at once.
  else if (Buffer.compare(tree.encode(), before.encode()) !== 0) draft.putAncestry(id, tree)
  else return rivalled
  draft.dropBodies(cut)
  return rivalled
}

/** @param document the document before the merge */
function hasRival(
  { path, attempt }: DocumentRevision, merged: RevisionTree, document: DocumentView | undefined,
): boolean {
  const known = document?.leaves.find(leaf => leaf.revision === `${path.start}-${path.ids[0]}`)
  return (known?.attempt !== undefined && known.attempt !== attempt) || merged.hasSibling(path)
}
