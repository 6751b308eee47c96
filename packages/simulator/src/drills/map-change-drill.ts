import { ApiError } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import { activeReplicas, majority } from '@sectional/server'
import type { DatabaseRecord } from '@sectional/server'
import { diskCall, openDisk, treeHas } from '../checkers/disk-contents.ts'
import type { Findings } from '../checkers/final-state.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const documents = 3
/** Milliseconds between the change of the map and the write, in either direction. */
const apartMs = 4
const filledMsMax = 60_000
/** The node may have decided about an answer this long before it sends it. */
const answerMs = 0.5

/**
 * While the disk of one replica is full, another one is reported as damaged, and stops to count, at nearly the same
 * time as a document is written. An acknowledged write is on a majority of the replicas that count then. At last, all
 * replicas are reported at once: one of them goes on counting (`metadata-log`), and no document is lost.
 */
export async function mapChangeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, world } = context
  const { ids, roles: { decider, standIn, third }, shard } = await pickShard(context, documents)
  const [through, doubted] = [world.node(decider), world.node(standIn)]
  const trouble = disks.of(world.node(third))
  const written = new Map<string, string>()
  const findings: string[] = []
  for (const id of ids) {
    const order = dice.between(-apartMs, apartMs)
    trouble.full = true
    const [{ body, status }] = await Promise.all([
      world.sleep(Math.max(0, order)).then(() => writeChecked(context, through, id, findings)),
      world.sleep(Math.max(0, -order)).then(() => report(through, shard, doubted.name)),
    ])
    trouble.full = false
    if (status === 201) written.set(id, body.rev)
    await counts(context, doubted)
  }
  await world.allReady()
  await world.converge(database)
  await Promise.all([decider, standIn, third].map(async number => {
    await world.sleep(dice.between(0, apartMs))
    await report(world.node(number), shard, world.node(number).name)
  }))
  await world.converge(database)
  for (const [id, revision] of written) {
    const { body, status } = await getAtRest(world, dice.pick(world.nodes).number, `/${database}/${id}`)
    if (status !== 200 || body._rev !== revision) {
      findings.push(`${id} ends as ${status} ${JSON.stringify(body)}, and ${revision} was acknowledged`)
    }
  }
  return findings
}

async function writeChecked(
  { database, world }: DrillContext, through: SimulatedNode, id: string, findings: string[],
): Promise<Awaited<ReturnType<typeof world.send>>> {
  const record = (): DatabaseRecord | undefined => through.inside?.control.state()?.databases.get(database)
  let changedMs = -Infinity
  const unsubscribe = through.inside!.control.onChange(() => { changedMs = world.nowMs })
  let counted: Promise<void> | undefined
  const answer = await world.send(through.number, 'PUT', `/${database}/${id}`, { drill: 'map change' }, {
    onAnswered: ({ body, status }) => {
      const now = record()
      if (status !== 201 || now === undefined || world.nowMs - changedMs < answerMs) return
      counted = onMajority(world.nodes, now, id, body.rev).then(finding => { findings.push(...finding) })
    },
  })
  unsubscribe()
  await counted
  return answer
}

/** Counts the copies on the disks as they are now. */
async function onMajority(
  nodes: readonly SimulatedNode[], record: DatabaseRecord, id: string, revision: string,
): Promise<Findings> {
  const copies = nodes.map(node => ({ name: node.name, disk: node.disk.copy() }))
  for (const shard of record.shards) {
    const active = activeReplicas(shard).map(({ node }) => node)
    const holders: string[] = []
    for (const { disk, name } of copies.filter(copy => active.includes(copy.name))) {
      const replica = (await openDisk(disk)).replica({ incarnation: record.incarnation, range: shard.range })
      const snapshot = await replica?.openDocument({ id, body: false, tree: true }, diskCall)
      if (treeHas(snapshot?.tree ?? [], revision)) holders.push(name)
    }
    if (holders.length === 0 || holders.length >= majority(active.length)) continue
    return [`${id} ${revision} was acknowledged with 201 when ${holders.join(', ')} had it on disk, and `
      + `${active.join(', ')} counted`]
  }
  return []
}

/** Reports through a node that a replica is damaged. Returns whether it stopped to count. */
export async function report(
  through: SimulatedNode, { incarnation, range }: ShardId, node: string,
): Promise<boolean> {
  try {
    return await through.inside!.control.replicaDamaged(incarnation, range, node)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return false
  }
}

/** Waits until the replicas of the node have been filled again. */
async function counts({ database, world }: DrillContext, node: SimulatedNode): Promise<void> {
  await world.eventually(`the replicas of ${node.name} to be filled`, filledMsMax, async () =>
    node.inside!.control.state()!.databases.get(database)!.shards.some(({ replicas }) =>
      replicas.some(replica => replica.node === node.name && replica.filling)) ? 'not yet' : null)
}
