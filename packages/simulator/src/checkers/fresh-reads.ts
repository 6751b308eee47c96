import { compareRevisions } from '@sectional/core'
import { Ancestry, editedRevision } from './ancestry.ts'
import { isAncestor, treeHas } from './disk-contents.ts'
import type { DocumentContents } from './disk-contents.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Without faults, a read with r + w > n sees every write that was acknowledged before it began. (During faults fewer
 * than r replicas may answer a read, and the response does not show that.)
 */
export function freshReads({ databases, operations }: FinalState): Findings {
  const written = Map.groupBy(
    operations.filter(operation =>
      makesRevision(operation) && operation.outcome === 'done' && operation.revision !== undefined),
    ({ database, id }) => `${database}/${id}`,
  )
  const purges = new PurgeRecords(operations)
  return operations.flatMap(read => {
    const final = databases.get(read.database)
    if (read.kind !== 'read' || read.outcome !== 'done' || !read.calm || final === undefined || !isOf(read, final)) {
      return []
    }
    const contents = final.documents.get(read.id)
    // A purge can remove what was written after a revision, including tombstones.
    if (contents === undefined || purges.ofDocument(read.database, read.id).length > 0) return []
    const before = (written.get(`${read.database}/${read.id}`) ?? []).filter(write =>
      write.endMs <= read.startMs && isOf(write, final) && overlap(read, write, final))
    const ofDocument = operations.filter(({ database, id }) => database === read.database && id === read.id)
    const deletions = ofDocument.filter(({ kind, tombstone, outcome, startMs }) =>
      (kind === 'delete' || tombstone === true) && outcome !== 'failed' && startMs <= read.endMs)
    const ancestry = new Ancestry(ofDocument, contents.branches)
    const mayBeDeleted = (revision: string): boolean => deletions.some(deletion => {
      const last = editedRevision(deletion)
      return last !== null && (last === revision || ancestry.isAncestor(revision, last))
    })
    const missed = before.find(write => misses(read, write, contents, ancestry) && !mayBeDeleted(write.revision!))
    return missed === undefined ? [] : [`${describe(read)} did not see ${describe(missed)}`]
  })
}

/** Returns whether r + w > n for the values that both requests asked for. */
function overlap(read: Operation, write: Operation, { record }: FinalDatabase): boolean {
  const n = Math.max(...record.shards.map(shard => shard.replicas.length))
  const usual = Math.floor(n / 2) + 1
  return Math.min(read.r ?? usual, n) + Math.min(write.w ?? usual, n) > n
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
