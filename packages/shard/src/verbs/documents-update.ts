import type { DocumentEdit, EditOutcome, UpdateDocumentsRequest } from '@sectional/core'
import {
  attachmentDigests, editedAttachments, joinedToParent, partitionOf, purgesOf, readRevision, revisionHash, RevisionTree,
} from '@sectional/core'
import type { DocumentView, WriteDraft } from '../writing/write-draft.ts'
import { inIdOrder } from './id-order.ts'

/** Decides edits. Edits of the same document are decided in their order. @returns the outcomes in the edits' order */
export function decideEdits(
  draft: WriteDraft, { edits, revsLimit, partitionBytesMax = Number.POSITIVE_INFINITY }: UpdateDocumentsRequest,
): EditOutcome[] {
  const outcomes = new Array<EditOutcome>(edits.length)
  for (const index of inIdOrder(edits)) outcomes[index] = decideEdit(draft, edits[index]!, partitionBytesMax)
  draft.stemDocuments(revsLimit)
  return outcomes
}

function decideEdit(draft: WriteDraft, edit: DocumentEdit, partitionBytesMax: number): EditOutcome {
  const { id, deleted, body } = edit
  const document = draft.document(id)
  const before = document?.tree ?? RevisionTree.empty
  const decision = before.decideEdit(edit)
  if (decision.kind === 'conflict') return decidedBefore(draft, edit, document) ?? decision
  if (decision.kind === 'tombstone') return decision
  const { parent } = decision
  if (!deleted && isFull(draft, id, partitionBytesMax)) return { kind: 'partition_overflow' }
  // An edit without a parent that revives a tombstone: the caller did not know the parent and hashed a first revision.
  const hash = parent === edit.parent
    ? edit.revisionHash
    : revisionHash({ deleted, parent, body, attachments: attachmentDigests(edit.attachments) })
  const ancestor = parent === null ? null : readRevision(parent)
  const path = ancestor === null
    ? { start: 1, ids: [hash] }
    : { start: ancestor.generation + 1, ids: [hash, ancestor.hash] }
  const name = `${path.start}-${hash}`
  const { tree, result } = before.merge(path, { deleted, bodyKey: draft.nextSequence })
  // When stemming has split the tree, an edit can make a revision that the tree already contains.
  if (result === 'internal') draft.putAncestry(id, tree)
  else draft.putRevision(id, tree, name, { body, ...editedAttachments(edit, path.start) }, edit.attempt)
  const purges = draft.anyPurges ? purgesOf(draft.purges(id), name) : []
  // Return the path before stemming, so that other replicas join the revision to its parent even if it was removed
  // here.
  return {
    kind: 'updated', ...(purges.length > 0 && { purges }),
    path: ancestor === null ? path : tree.path(name) ?? path,
  }
}

/**
 * Returns the outcome of an earlier call for the same attempt, as long as the revision that it made is a leaf and has
 * no rival.
 */
function decidedBefore(
  draft: WriteDraft, { id, parent, attempt }: DocumentEdit, document: DocumentView | undefined,
): EditOutcome | undefined {
  const own = attempt === undefined ? undefined : document?.leaves.find(leaf => leaf.attempt === attempt)
  const known = own === undefined ? null : document!.tree.path(own.revision)
  if (own === undefined || known === null) return undefined
  const path = joinedToParent(known, parent)
  if (document!.tree.hasSibling(path)) return undefined
  const purges = draft.anyPurges ? purgesOf(draft.purges(id), own.revision) : []
  return { kind: 'updated', path, ...(purges.length > 0 && { purges }) }
}

function isFull(draft: WriteDraft, id: string, bytesMax: number): boolean {
  const partition = draft.partitioned && bytesMax < Number.POSITIVE_INFINITY ? partitionOf(id) : null
  return partition !== null && draft.partition(partition).sizes.external >= bytesMax
}
