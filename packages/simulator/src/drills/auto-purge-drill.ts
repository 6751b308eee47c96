import type { Findings } from '../checkers/final-state.ts'
import { suspendFor } from './digest-round.ts'
import { DrillDocuments, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const hourMs = 3_600_000
const timeToLive = '5_hour'
const oldMs = 6 * hourMs
/**
 * Longer than a span in which replicas remember the times of changes (three hours), and shorter than the time to live.
 * The old tombstones are then older than both together.
 */
const youngMs = 3.5 * hourMs
/** Longer than the pause between two rounds of the upkeep, and than a round. */
const roundMs = 400_000

/**
 * Documents that were deleted long ago are purged where the database says so. A document that exists is kept, with its
 * deleted conflict, and so is a tombstone that is not old enough.
 */
export async function autoPurgeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, number, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  const edited = await documents.edit()
  const deleted = edited.map(({ id, firstRevision }) => {
    const [leaf, root] = [dice.hash(), firstRevision.split('-')[1]]
    return { _id: id, _rev: `2-${leaf}`, _revisions: { start: 2, ids: [leaf, root] }, _deleted: true }
  })
  await world.send(number, 'POST', `/${database}/_bulk_docs`, { docs: deleted, new_edits: false })
  await world.converge(database)
  await suspendFor(world, oldMs)
  const [fresh, ...older] = edited
  const { body: tombstone } = fresh === undefined
    ? { body: null } : await world.send(number, 'DELETE', `/${database}/${fresh.id}?rev=${fresh.lastRevision}`)
  const set = await world.send(number, 'PUT', `/${database}/_auto_purge`, { deleted_document_ttl: timeToLive })
  if (set.status !== 202) return []
  await suspendFor(world, youngMs)
  for (let round = 0; round < 2; round++) await suspendFor(world, roundMs)
  await world.converge(database)
  const findings: string[] = []
  for (const { id, lastRevision } of older) {
    const { body, status } = await getAtRest(world, dice.pick(world.nodes).number, `/${database}/${id}`)
    if (status === 200 && body._rev === lastRevision) continue
    findings.push(`${id} ends as ${status} ${body._rev ?? ''}, although ${lastRevision} was not deleted, and only a `
      + 'conflict of it was')
  }
  if (fresh !== undefined && tombstone?.ok === true) {
    const path = `/${database}/${fresh.id}?rev=${tombstone.rev}`
    const { status } = await getAtRest(world, dice.pick(world.nodes).number, path)
    if (status !== 200) findings.push(`${fresh.id} was purged before it had been deleted for five hours (${status})`)
  }
  await world.send(number, 'PUT', `/${database}/_auto_purge`, { deleted_document_ttl: 'infinity' })
  return findings
}
