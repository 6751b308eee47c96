import { DrillDocuments, getAtRest, readLatest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

const settleMs = 1000
const watchedMs = 500

/**
 * A node gets an older copy of its disk. The cluster notices that: the node serves all documents again, and a changes
 * feed that continues from a token of the node omits no change, although the copy lacks the sequences of the token.
 */
export async function olderDiskDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, world } = context
  await world.stop(number)
  const copy = world.node(number).disk.copy()
  await world.start(number)
  await world.ready()
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  const { status, body: read } = await world.send(number, 'GET', `/${database}/_changes`)
  world.crash(number)
  disks.putBack(world.node(number), copy)
  if (dice.chance(0.5)) await world.start(number)
  const edited = await documents.edit()
  if (!world.node(number).running) await world.start(number)
  await world.sleep(settleMs)
  await world.ready()
  await world.converge(database)
  const findings = [...await readLatest(context, edited, number, watchedMs)]
  if (status !== 200) return findings
  for (const node of world.nodes) {
    const { body } = await getAtRest(
      world, node.number, `/${database}/_changes?since=${encodeURIComponent(read.last_seq)}`,
    )
    const told = new Set(body.results?.map(({ id }: { readonly id: string }) => id))
    const missed = edited.filter(({ id }) => !told.has(id)).map(({ id }) => id)
    if (missed.length === 0) continue
    findings.push(`a feed of ${database} through ${node.name} since ${read.last_seq} omits ${missed.join(', ')}, which `
      + `were edited after node ${number} had given that token`)
  }
  return findings
}
