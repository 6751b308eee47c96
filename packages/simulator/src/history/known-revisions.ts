import { editKey, generationOf, mayTakeEffect } from './document-history.ts'
import type { DocumentHistory, Shown } from './document-history.ts'
import type { Finding } from './finding.ts'

/**
 * Every revision that is shown was made by some edit of the same document with the content that is shown, and that edit
 * was neither refused nor answered with a conflict. The same holds for the leaves at rest, and for the revisions
 * between a leaf and its oldest ancestor.
 */
export function knownRevisions(history: DocumentHistory): Finding[] {
  const judged = new Set<string>()
  return shownBy(history).flatMap(({ label, ...shown }): Finding[] => {
    const key = JSON.stringify([shown.revision, shown.content, shown.parent, shown.deleted])
    if (judged.has(key)) return []
    judged.add(key)
    const makers = history.makers(shown)
    if (makers.some(mayTakeEffect)) return []
    const what = `${label} shows ${history.document} ${shown.revision}`
      + (shown.content === undefined ? '' : ` with ${shown.content}`)
    const [refused] = makers
    return refused === undefined
      ? [{ rule: 'known-revisions', text: `${what}, which no edit has made` }]
      : [{ rule: 'conflicts-final', text: `${what}, but ${refused.label} was refused (${refused.outcome})` }]
  })
}

/** Returns what was shown, the earliest first. */
function shownBy({ edits, final, reads }: DocumentHistory): (Shown & { readonly label: string })[] {
  const atRest = (final?.branches ?? []).flatMap(({ revisions, deleted, content }) =>
    revisions.flatMap((revision, index): (Shown & { readonly label: string })[] => {
      const parent = revisions[index + 1]
      // The document may no longer have the ancestors of the oldest revision, so that nothing is known of its parent.
      return index === 0
        ? [{ label: 'the leaf at rest', revision, deleted, endMs: Infinity, ...(content !== undefined && { content }),
          ...(parent !== undefined && { parent }) }]
        : [{ label: 'the tree at rest', revision, endMs: Infinity, ...(parent !== undefined && { parent }) }]
    }))
  const edited = edits.flatMap(({ label, outcome, parent, endMs, grafted }) =>
    outcome === 'done' && parent !== null && !grafted ? [{ label, revision: parent, endMs }] : [])
  const read = reads.flatMap(each => each.revision === null ? [] : [each])
  return [...read, ...edited, ...atRest].sort((a, b) => a.endMs - b.endMs)
}

/**
 * Edits of one parent with equal content make the same revision, and different ones different revisions. So the answer
 * to an edit names the revision that the edit has made.
 */
export function sameRevision({ document, edits }: DocumentHistory): Finding[] {
  const acknowledged = edits.flatMap(edit => {
    const key = edit.grafted || edit.revision === undefined || !mayTakeEffect(edit) ? undefined : editKey(edit)
    return key === undefined ? [] : [{ key, edit, revision: edit.revision! }]
  })
  const wrongGeneration = edits.filter(({ parent, revision, grafted }) =>
    !grafted && parent !== null && revision !== undefined && generationOf(revision) !== generationOf(parent) + 1)
  const finding = (text: string): Finding => ({ rule: 'same-revision', text: `${document}: ${text}` })
  const differing = (groups: Iterable<typeof acknowledged>, member: 'key' | 'revision'): Finding[] =>
    [...groups].flatMap(([first, ...others]) => {
      const other = others.find(each => each[member] !== first![member])
      if (other === undefined) return []
      const [a, b] = [first!, other].map(({ edit, revision }) => `${edit.label} of ${edit.parent} made ${revision}`)
      return [finding(`${a} and ${b}, with ${member === 'key' ? 'different' : 'equal'} contents`)]
    })
  return [
    ...wrongGeneration.map(({ label, parent, revision }) => finding(`${label} of ${parent} made ${revision}`)),
    ...differing(Map.groupBy(acknowledged, ({ key }) => key).values(), 'revision'),
    ...differing(Map.groupBy(acknowledged, ({ revision }) => revision).values(), 'key'),
  ]
}
