/** Purges, of single revisions and of all that a document has. */
import type { RevisionPath } from '@sectional/core'
import type { Answer } from '../world/answer.ts'
import { outcomeOf } from './client-session.ts'
import type { ClientSession, Reading } from './client-session.ts'

export async function purge(session: ClientSession, database: string, id: string, extent: 'one leaf' | 'all leaves'): Promise<void> {
  const { status, body } = await session.look('GET', `/${database}/${id}?open_revs=all&revs=true`)
  if (status !== 200 || !Array.isArray(body)) return
  const leaves: RevisionPath[] = body.flatMap(({ ok }) => ok === undefined ? [] : [ok._revisions])
  if (leaves.length === 0) return
  const paths = extent === 'all leaves' ? leaves : [session.dice.pick(leaves)]
  const json = { [id]: paths.map(({ start, ids }) => `${start}-${ids[0]}`) }
  const [operation] = await session.ask(database, 'POST', `/${database}/_purge${session.quorum('?')}`, { json }, [{ kind: 'purge', id, paths, read: answer => readPurge(answer, id) }])
  session.remember(operation!)
}

export async function compact(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'POST', `/${database}/_compact`, { json: {} }, [{ kind: 'compact', id: '', read: ({ status }) => ({ outcome: outcomeOf(status) }) }])
}

function readPurge({ status, body }: Answer, id: string): Reading {
  const outcome = outcomeOf(status)
  return outcome === 'done' || outcome === 'accepted' ? { outcome, removed: body.purged[id] ?? [] } : { outcome: outcome === 'failed' ? 'failed' : 'unknown' }
}
