import type { FinalState, Findings } from './final-state.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Number of edits of one document that may be on their way to a replica at the same time, in any order. A smaller
 * `_revs_limit` removes the ancestors that would join them to one branch.
 */
export const revsLimitMin = 5

/**
 * While all replicas can reach each other, concurrent edits leave one branch. Conflicts come only from revisions that
 * were created elsewhere, and from edits of revisions that are being purged.
 */
export function oneBranch({ databases, everCalm, operations }: FinalState): Findings {
  if (!everCalm || [...databases.values()].some(({ record }) => record.revsLimit < revsLimitMin)) return []
  const grafted = new Set(
    operations.filter(({ kind }) => kind === 'graft').map(({ database, id }) => `${database}/${id}`),
  )
  const purges = new PurgeRecords(operations)
  return [...databases].flatMap(([name, { documents }]) => [...documents].flatMap(([id, { branches }]) => {
    if (branches.length === 1 || purges.ofDocument(name, id).length > 0 || grafted.has(`${name}/${id}`)) return []
    const leaves = branches.map(({ path }) => `${path.start}-${path.ids[0]}`).join(', ')
    return [`${name}/${id} has ${branches.length} branches although nothing ever went wrong: ${leaves}`]
  }))
}
