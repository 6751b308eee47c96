import { compareLeaves, compareRevisions } from '@sectional/core'
import { generationOf, mayTakeEffect } from './document-history.ts'
import type { DocumentHistory } from './document-history.ts'
import type { Finding } from './finding.ts'
import type { Edit, Read } from './recorded-history.ts'

/**
 * A read sees every acknowledged edit that it must see, or a later revision. A list misses no document and shows no old
 * revision of one, as far as it must be fresh.
 */
export function freshReads(history: DocumentHistory, stemmed: boolean): Finding[] {
  return history.reads.flatMap(read => {
    const { copiesMin = 1, freshSinceMs = -Infinity } = read
    const missed = history.edits.find(edit => edit.outcome === 'done' && edit.revision !== undefined
      && edit.copies >= copiesMin && edit.endMs <= freshSinceMs && isMissed(edit, read, history, stemmed))
    return missed === undefined ? [] : [{
      rule: 'fresh-reads',
      text: `${read.label} of ${history.document} showed ${read.revision ?? 'nothing'} and did not see `
        + `${missed.label} ${missed.revision}`,
    }]
  })
}

/** Every read at rest shows the winner: the first leaf in the order of compareLeaves, if it is not deleted. */
export function readsAgree({ document, final, reads }: DocumentHistory, restMs: number): Finding[] {
  const leaves = (final?.branches ?? []).map(({ revisions, deleted }) => ({ revision: revisions[0]!, deleted }))
  const [winner] = leaves.sort(compareLeaves)
  const shown = winner === undefined || winner.deleted ? null : winner.revision
  return reads.filter(({ startMs, revision, ofLeaf }) => startMs >= restMs && !ofLeaf && revision !== shown)
    .map(({ label, revision }): Finding => ({
      rule: 'reads-agree',
      text: `${label} of ${document} showed ${revision ?? 'nothing'} at rest, but the winner is ${shown ?? 'none'}`,
    }))
}

/**
 * The winner is never an ancestor of an acknowledged revision, unless the document has forgotten that. Otherwise it is
 * that revision, a descendant of it, or a branch that wins against it; or a descendant was deleted, and the winner may
 * then be anything.
 */
function isMissed(
  edit: Edit, { revision: seen, endMs }: Read, history: DocumentHistory, stemmed: boolean,
): boolean {
  const made = edit.revision!
  if (seen === made) return false
  if (seen !== null && !stemmed && history.isAncestor(seen, made)) return true
  if (edit.deleted) return false
  if (seen !== null && (history.isAncestor(made, seen) || compareRevisions(seen, made) > 0)) return false
  return !history.edits.some(other =>
    other.deleted && mayTakeEffect(other) && other.startMs <= endMs && mayDescend(other, made, history))
}

/** Returns whether the deletion may have removed the revision or a descendant of it. */
function mayDescend({ ancestors, parent: replaced }: Edit, made: string, history: DocumentHistory): boolean {
  const parent = replaced ?? ancestors?.[0]
  return parent === undefined || parent === made || history.isAncestor(made, parent)
    || (generationOf(parent) > generationOf(made) && !reachesGeneration(parent, made, history))
}

/** Returns whether the ancestors of the revision are known down to the generation of the other one. */
function reachesGeneration(revision: string, other: string, history: DocumentHistory): boolean {
  let at: string | undefined = revision
  while (at !== undefined && generationOf(at) > generationOf(other)) at = history.parentOf(at)
  return at !== undefined
}
