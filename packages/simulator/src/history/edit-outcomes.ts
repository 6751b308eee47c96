import { generationOf, isAcknowledged, mayTakeEffect } from './document-history.ts'
import type { DocumentHistory } from './document-history.ts'
import type { Finding } from './finding.ts'
import type { Edit } from './recorded-history.ts'

/**
 * At most one of the exclusive edits of one parent is acknowledged with 201. This includes edits with equal content:
 * they make the same revision, and only one client may believe that the edit was its own.
 */
export function oneSuccess(history: DocumentHistory): Finding[] {
  const successes = history.edits.filter(({ outcome, exclusive, grafted, revision }) =>
    outcome === 'done' && exclusive && !grafted && revision !== undefined)
  return [...Map.groupBy(successes, edit => editedText(edit, history))].flatMap(([edited, edits]) => edits.length < 2
    ? []
    : [{
      rule: 'one-success' as const,
      text: `${edits.length} edits of ${edited} of ${history.document} succeeded: ${
        edits.map(({ label, revision }) => `${label} ${revision}`).join(', ')}`,
    }])
}

/** Names the revision that the edit has replaced. Edits with equal texts exclude each other. */
function editedText({ parent, revision }: Edit, history: DocumentHistory): string {
  if (parent !== null) return parent
  if (generationOf(revision!) === 1) return 'nothing'
  return history.parentOf(revision!) ?? `the parent of ${revision}`
}

/**
 * A conflict has a cause: some other edit may have replaced the parent, or created the document, before the answer.
 * This is judged where the document had the parent for certain: an exclusive edit that made it was acknowledged with
 * 201 before the edit began. Below a majority of the replicas, nobody else may know of it.
 */
export function foundedConflicts({ document, edits }: DocumentHistory): Finding[] {
  return edits.flatMap(edit => {
    const { endMs, grafted, outcome, parent, startMs } = edit
    const hadParent = parent === null || edits.some(other =>
      other.outcome === 'done' && other.exclusive && other.revision === parent && other.endMs <= startMs)
    if (outcome !== 'conflict' || grafted || !hadParent) return []
    const cause = edits.some(other =>
      other !== edit && mayTakeEffect(other) && other.startMs <= endMs && mayReplace(other, parent))
    return cause ? [] : [{
      rule: 'founded-conflicts',
      text: `${edit.label} of ${parent ?? 'nothing'} of ${document} got a conflict, but no edit can be the cause`,
    }]
  })
}

/** Returns whether the edit may have replaced the revision; null: or created the document. */
function mayReplace({ grafted, parent, revision }: Edit, replaced: string | null): boolean {
  if (grafted || replaced === null || parent === replaced) return true
  return parent === null && (revision === undefined || generationOf(revision) === generationOf(replaced) + 1)
}

/** The document at rest has every revision that was acknowledged, unless older ancestors were removed from its tree. */
export function acknowledgedKept({ document, edits, final }: DocumentHistory): Finding[] {
  return edits.flatMap(edit => {
    const { kept, label, revision } = edit
    if (!kept || revision === undefined || !isAcknowledged(edit)) return []
    const isThere = final?.branches.some(({ revisions }) =>
      revisions.includes(revision) || generationOf(revisions.at(-1)!) > generationOf(revision)) ?? false
    const reason = final === undefined ? 'there is no such document' : 'it is not in the tree'
    return isThere ? [] : [{ rule: 'acknowledged-kept', text: `${label} ${document} ${revision} is lost: ${reason}` }]
  })
}
