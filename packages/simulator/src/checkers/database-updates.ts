/** Reads `_db_updates` after the cluster has come to rest. */
import type { World } from '../world/world.ts'
import type { FinalDatabase, Findings } from './final-state.ts'

/** Milliseconds after which every event has been recorded. */
const recordedMsMax = 60_000

interface UpdateRow {
  readonly db_name: string
  readonly type: 'created' | 'updated' | 'deleted'
}

/**
 * Through every node, `_db_updates` tells of the creation of each database that exists. Where it tells of the creation
 * of a database that does not exist, it tells of its deletion too. A database has one row of each type at most. The
 * order of the rows is not promised (docs/reference/changes.md).
 */
export async function databaseUpdates(
  world: World, databases: ReadonlyMap<string, FinalDatabase>,
): Promise<Findings> {
  const endMs = world.nowMs + recordedMsMax
  for (;;) {
    const findings: string[] = []
    for (const { number } of world.nodes) {
      const { status, body } = await world.send(number, 'GET', '/_db_updates?since=0')
      const rows: readonly UpdateRow[] = status === 200 ? body.results : []
      const found = status === 200 ? wrongEvents(rows, databases) : [`is answered ${status} ${JSON.stringify(body)}`]
      findings.push(...found.map(problem => `_db_updates through node ${number} ${problem}`))
    }
    if (findings.length === 0 || world.nowMs > endMs) return findings
    await world.sleep(1000)
  }
}

function wrongEvents(rows: readonly UpdateRow[], databases: ReadonlyMap<string, FinalDatabase>): string[] {
  const namesOf = (wanted: UpdateRow['type']): Set<string> =>
    new Set(rows.filter(({ type }) => type === wanted).map(({ db_name: name }) => name))
  const created = namesOf('created')
  const deleted = namesOf('deleted')
  const missing = [...databases.keys()].filter(name => !name.startsWith('_') && !created.has(name))
    .map(name => `does not tell of the creation of ${name}`)
  const standing = [...created].filter(name => !databases.has(name) && !deleted.has(name))
    .map(name => `tells of the creation of ${name}, which does not exist, and not of its deletion`)
  const twice = [...Map.groupBy(rows, ({ db_name: name, type }) => `${type} row of ${name}`)]
    .filter(([, same]) => same.length > 1).map(([row, same]) => `has the ${row} ${same.length} times`)
  return [...missing, ...standing, ...twice]
}
