import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Findings } from '../checkers/final-state.ts'
import { DrillDocuments, readLatest } from './drill.ts'
import type { DrillContext, EditedDocument } from './drill.ts'

const settleMs = 3000
/** Slow links make a node fill its replicas slowly. */
const slowMs = 100
const fillingMsMax = 20_000
const pollMs = 20

/**
 * A node loses its disk and is filled. From its first answer on, reads and lists through it show what the others have,
 * because a replica that is being filled is not read.
 */
export async function refillDrill(context: DrillContext): Promise<Findings> {
  const { database, disks, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  const node = world.node(number)
  world.crash(number)
  disks.lose(node)
  const edited = await documents.edit()
  await world.sleep(settleMs)
  for (const other of others) {
    world.slow(number, other, slowMs)
    world.slow(other, number, slowMs)
  }
  await world.start(number)
  const findings = (await Promise.all([
    readLatest(context, edited, number, settleMs), listLatest(context, edited, node),
  ])).flat()
  world.heal()
  await world.ready()
  await world.converge(database)
  return findings
}

/** Lists the documents through the node until its replicas are filled. */
async function listLatest(
  { database, world }: DrillContext, edited: readonly EditedDocument[], node: SimulatedNode,
): Promise<Findings> {
  const endMs = world.nowMs + fillingMsMax
  while (world.nowMs < endMs && !isFilled(node, database)) {
    const { body, status } = await world.send(
      node.number, 'GET', `/${database}/_all_docs?startkey=%22drill:%22&endkey=%22drill;%22`,
    )
    const rows: readonly { readonly id: string; readonly value: { readonly rev: string } }[] =
      status === 200 && Array.isArray(body?.rows) ? body.rows : []
    const shown = new Map(rows.map(({ id, value }) => [id, value.rev]))
    const late = status !== 200 ? undefined : edited.find(({ id, lastRevision }) => shown.get(id) !== lastRevision)
    if (late !== undefined) {
      return [`a list through ${node.name}, which is being filled, shows ${shown.get(late.id) ?? 'nothing'} of `
        + `${late.id}, of which ${late.lastRevision} had been acknowledged by a majority`]
    }
    await world.sleep(pollMs)
  }
  return []
}

/** Returns whether the node knows that all its replicas of the database count. */
function isFilled(node: SimulatedNode, database: string): boolean {
  const record = node.inside?.control.state()?.databases.get(database)
  return record !== undefined && record.shards.every(({ replicas }) =>
    replicas.every(replica => replica.node !== node.name || !replica.filling))
}
