import type { Findings } from '../checkers/final-state.ts'
import { suspendFor } from './digest-round.ts'
import { DrillDocuments, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

/** Longer than the spans in which replicas remember the times of changes. */
const oldMs = 8 * 3_600_000
/** Longer than the pause between two rounds of the upkeep, and than a round. */
const roundMs = 400_000

/**
 * Documents that were deleted long ago are purged where the database says so. A document that exists is kept, with its
 * deleted conflict.
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
  const set = await world.send(number, 'PUT', `/${database}/_auto_purge`, { deleted_document_ttl: '1_hour' })
  if (set.status !== 202) return []
  for (let round = 0; round < 2; round++) await suspendFor(world, roundMs)
  await world.converge(database)
  const findings: string[] = []
  for (const { id, lastRevision } of edited) {
    const { body, status } = await getAtRest(world, dice.pick(world.nodes).number, `/${database}/${id}`)
    if (status === 200 && body._rev === lastRevision) continue
    findings.push(`${id} ends as ${status} ${body._rev ?? ''}, although ${lastRevision} was not deleted, and only a `
      + 'conflict of it was')
  }
  await world.send(number, 'PUT', `/${database}/_auto_purge`, { deleted_document_ttl: 'infinity' })
  return findings
}
