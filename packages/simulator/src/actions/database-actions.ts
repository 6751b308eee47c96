/** Creates and deletes databases, and looks whether they exist. */
import type { DatabaseOptions } from '../plan/swarm-options.ts'
import { outcomeOf } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

export const databaseActions: readonly SwarmAction[] = [
  {
    name: 'create-database', weight: 2,
    act: session => createDatabase(session, session.dice.pick(session.options.databases)),
  },
  { name: 'delete-database', weight: 2, act: deleteDatabase },
]

export const lookActions: readonly SwarmAction[] = [
  {
    name: 'look-database', weight: 1,
    act: (session, database) => session.ask(database, 'GET', `/${database}`, {}, [
      { kind: 'look-database', id: '', read: readDatabaseChange },
    ]),
  },
]

/** Weights of the actions of clients that only create and delete a few databases. */
export const nameOperations: Readonly<Record<string, number>> = {
  'create-database': 4, 'delete-database': 3, 'look-database': 3,
}

/** Creates a database. Resolves with true when the database certainly exists. */
export async function createDatabase(session: ClientSession, { name, q, n }: DatabaseOptions): Promise<boolean> {
  const partitioned = session.options.partitioned ? '&partitioned=true' : ''
  const [operation] = await session.ask(name, 'PUT', `/${name}?q=${q}&n=${n}${partitioned}`, {}, [
    { kind: 'create-database', id: '', read: readDatabaseChange },
  ])
  return operation!.outcome === 'done' || operation!.status === 412
}

async function deleteDatabase(session: ClientSession): Promise<void> {
  const fleeting = session.options.databases.filter(each => each.fleeting)
  if (fleeting.length === 0) return
  const { name } = session.dice.pick(fleeting)
  await session.ask(name, 'DELETE', `/${name}`, {}, [{ kind: 'delete-database', id: '', read: readDatabaseChange }])
}

function readDatabaseChange({ status }: Answer): Reading {
  return { outcome: outcomeOf(status) }
}
