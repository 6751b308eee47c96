/** Purges single revisions, or all leaves of a document. */
import type { RevisionPath } from '@sectional/core'
import { purgedStays } from '../checkers/purged-stays.ts'
import { outcomeOf } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

const family = { name: 'purges', leftOutChance: 0.5 }
const checkers = { 'purged-stays': purgedStays }

export const purgeActions: readonly SwarmAction[] = [
  {
    name: 'purge-revision', weight: 3, family, checkers,
    act: (session, database, id) => purge(session, database, id, 'one leaf'),
  },
  {
    name: 'purge-document', weight: 2, family, checkers,
    act: (session, database, id) => purge(session, database, id, 'all leaves'),
  },
  { name: 'compact', weight: 1, act: compact },
]

/** Purges that are sent through a node that the others cannot reach, if there is one. */
export const cutOffPurgeActions: readonly SwarmAction[] = [
  {
    name: 'purge-through-cut-off', weight: 2, family, checkers,
    act: (session, database, id) => purge(session, database, id, 'one leaf', () => session.moveToCutOff()),
  },
]

type Extent = 'one leaf' | 'all leaves'

/**
 * Purges leaves of a document that the client has just read.
 *
 * @param move is called between the read and the purge, and may choose another node for the purge
 */
export async function purge(
  session: ClientSession, database: string, id: string, extent: Extent, move = (): void => {},
): Promise<void> {
  const { status, body } = await session.look('GET', `/${database}/${id}?open_revs=all&revs=true`)
  if (status !== 200 || !Array.isArray(body)) return
  const leaves: RevisionPath[] = body.flatMap(({ ok }) => ok === undefined ? [] : [ok._revisions])
  if (leaves.length === 0) return
  const paths = extent === 'all leaves' ? leaves : [session.dice.pick(leaves)]
  move()
  const json = { [id]: paths.map(({ start, ids }) => `${start}-${ids[0]}`) }
  const [operation] = await session.ask(database, 'POST', `/${database}/_purge${session.quorum('?')}`, { json }, [
    { kind: 'purge', id, paths, read: answer => readPurge(answer, id) },
  ])
  session.remember(operation!)
}

async function compact(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'POST', `/${database}/_compact`, { json: {} }, [
    { kind: 'compact', id: '', read: ({ status }) => ({ outcome: outcomeOf(status) }) },
  ])
}

function readPurge({ status, body }: Answer, id: string): Reading {
  const outcome = outcomeOf(status)
  if (outcome === 'done' || outcome === 'accepted') return { outcome, removed: body.purged[id] ?? [] }
  return { outcome: outcome === 'failed' ? 'failed' : 'unknown' }
}
