import { documentLeavesMax } from '@sectional/core'
import type { DocumentRevision } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const call = { timeoutMs: 60_000 }

/**
 * A document has one branch less than it may have. A client may add one, and no further one. Replicas and coordinators
 * pass on what others have accepted, so that their branches are stored nevertheless.
 */
export async function branchLimitDrill({ number, world }: DrillContext): Promise<Findings> {
  const path = '/branches'
  const node = world.node(number)
  // One replica, because the branches would be copied to others for a long time.
  const { status } = await world.send(number, 'PUT', `${path}?q=1&n=1`)
  if (status !== 201) return []
  const { incarnation, shards: [record] } = node.inside!.control.state()!.databases.get('branches')!
  const host = world.nodes.find(({ name }) => name === record!.replicas[0]!.node)!
  await world.send(host.number, 'GET', path)
  const replica = world.moments.replicaOf(host, { incarnation, range: record!.range })
  const findings: string[] = []
  if (replica !== undefined) {
    const revisions = Array.from({ length: documentLeavesMax - 1 }, (_, index) => branch(index))
    await replica.storeRevisions({ revisions, revsLimit: 1000 }, call)
    const stored: boolean[] = []
    for (const index of [0, 1]) {
      const { path: { ids } } = branch(documentLeavesMax + index)
      const docs = [{ _id: 'many', _rev: `1-${ids[0]}` }]
      const { body } = await world.send(number, 'POST', `${path}/_bulk_docs`, { docs, new_edits: false })
      stored.push(Array.isArray(body) && body.length === 0)
    }
    if (stored[0] === false) findings.push(`a client may not add branch ${documentLeavesMax} of a document`)
    if (stored[1] === true) findings.push(`a client has added branch ${documentLeavesMax + 1} of a document`)
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
