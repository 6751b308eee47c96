import { compareRevisions } from '@sectional/core'
import type { Operation } from '../workload/history.ts'
import { Ancestry, editedRevision } from './ancestry.ts'
import { isAncestor, treeHas } from './disk-contents.ts'
import type { DocumentContents } from './disk-contents.ts'

/**
 * Returns a write that a read did not see although it should have, or undefined.
 *
 * @param read a read of a document, which has seen `read.revision`
 * @param before acknowledged writes of the document that the read must see, unless later ones have replaced them
 * @param ofDocument all operations on the document
 * @param contents the document at the end of the run; no revision of it was purged
 */
export function missedWrite(
  read: Operation, before: readonly Operation[], ofDocument: readonly Operation[], contents: DocumentContents,
): Operation | undefined {
  const deletions = ofDocument.filter(({ kind, tombstone, outcome, startMs }) =>
    (kind === 'delete' || tombstone === true) && outcome !== 'failed' && startMs <= read.endMs)
  const ancestry = new Ancestry(ofDocument, contents.branches)
  const mayBeDeleted = (revision: string): boolean => deletions.some(deletion => {
    const last = editedRevision(deletion)
    return last !== null && (last === revision || ancestry.isAncestor(revision, last))
  })
  return before.find(write => misses(read, write, contents, ancestry) && !mayBeDeleted(write.revision!))
}

function misses(read: Operation, write: Operation, { branches }: DocumentContents, ancestry: Ancestry): boolean {
  const seen = read.revision
  const wrote = write.revision!
  if (!treeHas(branches, wrote)) return false // acknowledged-kept reports it
  if (seen === wrote) return false
  if (seen !== undefined && isAncestor(branches, seen, wrote)) return true
  // Another branch may have become the winner, or all descendants may have been deleted since then.
  const mayBeGone = write.kind !== 'write'
    || branches.some(({ path, tombstones }) =>
      path.ids.some((hash, at) => tombstones[at] === true && atOrBelow(path, at, hash, wrote)))
  if (mayBeGone) return false
  return seen === undefined || (!ancestry.isAncestor(wrote, seen) && compareRevisions(seen, wrote) < 0)
}

function atOrBelow(
  path: { readonly start: number; readonly ids: readonly string[] }, at: number, hash: string, revision: string,
): boolean {
  const [generation, revisionHash] = revision.split('-') as [string, string]
  const index = path.start - Number(generation)
  return path.ids[index] === revisionHash && at <= index && path.ids[at] === hash
}
