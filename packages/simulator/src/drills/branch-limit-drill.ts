import { documentHash, documentLeavesMax, rangeContains } from '@sectional/core'
import type { DocumentRevision } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const call = { timeoutMs: 60_000 }
const shards = 4
/** Documents that are written with the one that has too many branches, in several shards. */
const othersMax = 6

/**
 * A document has one branch less than it may have. A client may add one, and no further one. Replicas and coordinators
 * pass on what others have accepted, so that their branches are stored nevertheless.
 */
export async function branchLimitDrill({ dice, number, world }: DrillContext): Promise<Findings> {
  const path = '/branches'
  const node = world.node(number)
  // One replica, because the branches would be copied to others for a long time.
  const { status } = await world.send(number, 'PUT', `${path}?q=${shards}&n=1`)
  if (status !== 201) return []
  const { incarnation, shards: records } = node.inside!.control.state()!.databases.get('branches')!
  const record = records.find(({ range }) => rangeContains(range, documentHash('many', false)))
  const host = world.nodes.find(({ name }) => name === record!.replicas[0]!.node)!
  await world.send(host.number, 'GET', path)
  const replica = world.moments.replicaOf(host, { incarnation, range: record!.range })
  const findings: string[] = []
  if (replica !== undefined) {
    const revisions = Array.from({ length: documentLeavesMax - 1 }, (_, index) => branch(index))
    await replica.storeRevisions({ revisions, revsLimit: 1000 }, call)
    for (const [index, refused] of ['', 'many'].entries()) {
      const _rev = `1-${branch(documentLeavesMax + index).path.ids[0]}`
      const others = Array.from({ length: dice.integer(0, othersMax) }, (_, at) => ({ _id: `other${at}`, _rev }))
      const docs = others.toSpliced(dice.integer(0, others.length), 0, { _id: 'many', _rev })
      const { body } = await world.send(number, 'POST', `${path}/_bulk_docs`, { docs, new_edits: false })
      // A node with a small limit of concurrent calls may be too busy for a part of the request.
      const shown = Array.isArray(body)
        ? body.flatMap(({ error, id }) => error === 'service unavailable' ? [] : id).join() : JSON.stringify(body)
      if (shown === refused) continue
      findings.push(`of ${docs.map(({ _id }) => _id).join()}, "${shown}" are refused, and not "${refused}", when `
        + `branch ${documentLeavesMax + index} of "many" is added`)
    }
    const further = { revisions: [branch(documentLeavesMax + 2)], revsLimit: 1000 }
    const { refused } = await replica.storeRevisions(further, call)
    if (refused !== undefined) findings.push(`a replica refuses branch ${documentLeavesMax + 1}, which another one has`)
  }
  await deleteAtRest(world, number, path)
  return findings
}

function branch(index: number): DocumentRevision {
  const body = new Uint8Array(Buffer.from('{}'))
  return { id: 'many', path: { start: 1, ids: [index.toString(16).padStart(32, '0')] }, deleted: false, body }
}
