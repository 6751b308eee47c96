import { mayBeStemmed, treeHas } from './disk-contents.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'
import { PurgeRecords } from './purge-records.ts'
import { makesRevision } from '../workload/history.ts'

/**
 * Every acknowledged revision is in the tree of its document at the end. A revision that was acknowledged below w (202)
 * may be missing after the loss of a disk, because that disk may have been the only one that had it. Revisions that a
 * client asked to purge may be missing too.
 */
export function acknowledgedKept({ databases, lostDisks, operations }: FinalState): Findings {
  const purges = new PurgeRecords(operations)
  return operations.flatMap(operation => {
    const { outcome, revision, database, id } = operation
    const final = databases.get(database)
    if (final === undefined || revision === undefined || !isOf(operation, final)) return []
    if (!makesRevision(operation) || (outcome !== 'done' && (outcome !== 'accepted' || lostDisks > 0))) return []
    const contents = final.documents.get(id)
    if (purges.mayHaveRemoved(database, id, revision)) return []
    return contents !== undefined && (treeHas(contents.branches, revision) || mayBeStemmed(contents.branches, revision))
      ? []
      : [`${describe(operation)} is lost: ${contents === undefined ? 'no such document' : 'it is not in the tree'}`]
  })
}
