import { documentStoreName } from '@sectional/server'
import { DrillDocuments, getAtRest, readLatest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

const settleMs = 1000
const watchedMs = 500
const lostBatchesMax = 12
const noticedMs = 5000

/**
 * A node gets an older copy of its disk. The cluster notices that: the node serves all documents again, and a changes
 * feed that continues from a token of the node omits no change, although the copy lacks the sequences of the token.
 */
export async function olderDiskDrill(context: DrillContext): Promise<Findings> {
  const { disks, number, world } = context
  const node = world.node(number)
  await world.stop(number)
  const copy = node.disk.copy()
  await world.start(number)
  await world.ready()
  return writtenOnWornDisk(context, async () => {
    world.crash(number)
    disks.putBack(node, copy)
  })
}

/**
 * The disk of a node that stopped, or that crashed after it had stopped in order once, loses the last writes to its
 * documents. The node notices that, so that the same holds as with an older copy.
 */
export async function lostWritesDrill(context: DrillContext): Promise<Findings> {
  const { dice, disks, number, world } = context
  const node = world.node(number)
  const crashes = dice.chance(0.4)
  if (crashes) {
    await world.stop(number)
    await world.start(number)
    await world.ready()
  }
  return writtenOnWornDisk(context, async () => {
    // Writes of the last second cannot be told from writes that were never made (docs/reliability.md).
    await world.sleep(noticedMs)
    if (crashes) world.crash(number)
    else await world.stop(number)
    const length = node.disk.journalLength(documentStoreName)
    const from = Math.max(0, length - dice.integer(1, lostBatchesMax))
    if (length > 0 && node.disk.loseBatches(documentStoreName, from, length)) disks.noteDamage(node)
  })
}

/** @param wear stops the node, and takes the last writes from its disk */
async function writtenOnWornDisk(context: DrillContext, wear: () => Promise<void>): Promise<Findings> {
  const { database, dice, number, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  const { status, body: read } = await world.send(number, 'GET', `/${database}/_changes`)
  await wear()
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
