import type { FinalState, Findings } from './final-state.ts'

/** A database that no client asked to delete exists, and is still the same incarnation. */
export function keptDatabases({ databases, operations }: FinalState): Findings {
  const asked = new Set(operations.filter(({ kind, outcome }) => kind === 'delete-database' && outcome !== 'failed')
    .map(({ database }) => database))
  const created = operations.filter(({ kind, outcome, database }) =>
    kind === 'create-database' && outcome === 'done' && !asked.has(database))
  return created.flatMap(({ database, incarnationAfter }) => {
    const now = databases.get(database)?.record.incarnation
    return incarnationAfter === undefined || now === incarnationAfter
      ? []
      : [`${database} was created as ${incarnationAfter} and never deleted, but is ${now ?? 'gone'}`]
  })
}
