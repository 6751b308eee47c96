import { mayBeStemmed, treeHas } from './disk-contents.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/**
 * Every acknowledged revision is in the tree of its document afterwards; one that was acknowledged below w too, unless
 * a disk was lost, which may have been the only one.
 */
export function acknowledgedKept({ databases, lostDisks, operations }: FinalState): Findings {
  return operations.flatMap(operation => {
    const { kind, outcome, revision, database, id } = operation
    const final = databases.get(database)
    if (final === undefined || revision === undefined || !isOf(operation, final)) return []
    if (!['write', 'delete', 'graft'].includes(kind) || (outcome !== 'done' && (outcome !== 'accepted' || lostDisks > 0))) return []
    const contents = final.documents.get(id)
    return contents !== undefined && (treeHas(contents.branches, revision) || mayBeStemmed(contents.branches, revision)) ? [] : [`${describe(operation)} is lost: ${contents === undefined ? 'no such document' : 'it is not in the tree'}`]
  })
}
