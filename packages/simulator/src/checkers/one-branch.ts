import type { FinalState, Findings } from './final-state.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Edits of one document that may be on their way to a replica at a time, in any order: a limit below cuts off what
 * would join them.
 */
export const revsLimitMin = 5

/**
 * While all replicas reach each other, concurrent edits leave one branch: only revisions brought from elsewhere make
 * conflicts, and edits of what is being purged.
 */
export function oneBranch({ databases, everCalm, operations }: FinalState): Findings {
  if (!everCalm || [...databases.values()].some(({ record }) => record.revsLimit < revsLimitMin)) return []
  const grafted = new Set(
    operations.filter(({ kind }) => kind === 'graft').map(({ database, id }) => `${database}/${id}`),
  )
  const purges = new PurgeRecords(operations)
  return [...databases].flatMap(([name, { documents }]) => [...documents].flatMap(([id, { branches }]) => (
    branches.length === 1 || purges.ofDocument(name, id).length > 0 || grafted.has(`${name}/${id}`)
      ? []
      : [`${name}/${id} has ${branches.length} branches although nothing ever went wrong: ${branches.map(({ path }) => `${path.start}-${path.ids[0]}`).join(', ')}`]
  )))
}
