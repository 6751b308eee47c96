import type { DocumentRevision, StoreRevisionsRequest } from '@sectional/core'
import { isPurged, RevisionTree } from '@sectional/core'
import { supersedesLocal } from '../records/local-record.ts'
import type { WriteDraft } from '../write-draft.ts'
import { inIdOrder } from './id-order.ts'
import { stem } from './stem.ts'

/** Merges what other replicas or clusters decided: never a conflict, and no change for what is known. */
export function decideRevisions(draft: WriteDraft, { revisions, locals = [], revsLimit, checkpoint, trail, external }: StoreRevisionsRequest): void {
  for (const index of inIdOrder(revisions)) {
    const { id, path, purges } = revisions[index]!
    if (draft.anyPurges && external !== true && isPurged(draft.purges(id), `${path.start}-${path.ids[0]}`, purges)) continue
    mergeRevision(draft, revisions[index]!, revsLimit)
  }
  for (const local of locals) {
    const existing = draft.localDocument(local.id)
    if (existing === undefined || supersedesLocal(local, existing)) draft.putLocal(local)
  }
  if (checkpoint !== undefined) draft.putCheckpoint(checkpoint.history, checkpoint.sequence)
  if (trail !== undefined) draft.extendTrail(trail)
}

function mergeRevision(draft: WriteDraft, { id, path, deleted, body, attachments }: DocumentRevision, revsLimit: number): void {
  const before = draft.document(id)?.tree ?? RevisionTree.empty
  const { tree: merged, result } = before.merge(path, { deleted, bodyKey: draft.nextSequence })
  if (merged === before) return
  const { tree, cut } = stem(merged, revsLimit)
  if (result !== 'internal') draft.putRevision(id, tree, { body, ...(attachments && { attachments }) })
  // A known revision may still bring ancestors; they may also be cut off again at once.
  else if (Buffer.compare(tree.encode(), before.encode()) !== 0) draft.putAncestry(id, tree)
  else return
  draft.dropBodies(cut)
}
