import { blobStoreName } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'
import type { ShardRoles } from './shard-roles.ts'

const documents = 10
/** All branches together are more than one write of anti-entropy holds. */
const branches = 52
const examinedMax = 30
const attachedBytes = 40
const apartMs = 3000
const pushesMetric = 'sectional_anti_entropy_passes_total{kind="push"'
/** Milliseconds after which a node has pushed to a peer whose link has opened. */
const pushedMs = 15_000
/** Milliseconds within which the changes of a node are confirmed by its peers, when nobody writes. */
const confirmedMsMax = 100_000
const slowMs = 500
/** Milliseconds between a write and another one that meets the push of the first. */
const nextWriteMs = { min: 2500, max: 3600 }

/**
 * Anti-entropy fills a replica that was away, pushes to a node that returns, and comes to an end. The replica was away
 * while clients made documents with many branches, and with attachments whose content one of the others has lost since.
 * (`checkpoints-true` examines what the replica confirms meanwhile.)
 */
export async function replicationDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids, roles, shard: { range } } = await pickShard(context, documents)
  const [away, lacks, has] = dice.sample([roles.decider, roles.standIn, roles.third], 3) as [number, number, number]
  await world.stop(away)
  const before = new Set(blobsOf(world.node(lacks)).keys())
  await graft(context, has, ids)
  await world.sleep(apartMs)
  const lost = [...blobsOf(world.node(lacks))].filter(([hash]) => !before.has(hash))
  for (const [hash] of lost) blobsOf(world.node(lacks)).delete(hash)
  world.say(`${world.node(lacks).name} has lost ${lost.length} blobs of ${range.begin}`)
  world.cut(has, away)
  world.cut(away, has)
  world.moments.examine(examinedMax)
  await world.start(away)
  await world.sleep(apartMs)
  for (const [hash, content] of lost) blobsOf(world.node(lacks)).set(hash, content)
  world.heal()
  await world.ready()
  await world.converge(database)
  world.moments.examine(0)
  return [...await writtenWhilePushing(context, roles), ...await pushedToReturning(context, away)]
}

function blobsOf(node: SimulatedNode): Map<string, Uint8Array> {
  return node.disk.blobs.blobs(blobStoreName)
}

/** Writes documents that were made elsewhere, with many branches and one attachment each. */
async function graft({ database, dice, world }: DrillContext, through: number, ids: readonly string[]): Promise<void> {
  const docs = ids.flatMap(_id => {
    const root = dice.hash()
    return Array.from({ length: branches }, (_, branch) => {
      const leaf = dice.hash()
      const data = Buffer.from(dice.hash().padEnd(attachedBytes, 'a')).toString('base64')
      return {
        _id, _rev: `2-${leaf}`, _revisions: { start: 2, ids: [leaf, root] }, branch,
        ...(branch === 0 && { _attachments: { content: { data, content_type: 'text/plain' } } }),
      }
    })
  })
  await world.send(through, 'POST', `/${database}/_bulk_docs`, { docs, new_edits: false })
}

/** A change that is made while a push of the shard runs is pushed after it. */
async function writtenWhilePushing(
  context: DrillContext, { decider, standIn, third }: ShardRoles,
): Promise<Findings> {
  const { database, dice, world } = context
  const { ids } = await pickShard(context, 2)
  for (const other of [standIn, third]) {
    world.slow(decider, other, slowMs)
    world.slow(other, decider, slowMs)
  }
  for (const id of ids) {
    await world.write(decider, database, id, { drill: 'pushed' })
    await world.sleep(dice.between(nextWriteMs.min, nextWriteMs.max))
  }
  world.heal()
  const findings: string[] = []
  const endMs = world.nowMs + confirmedMsMax
  for (;;) {
    const lagging = (await Promise.all(world.nodes.map(async ({ name, number }) =>
      (await metrics(world, number)).filter(({ line, value }) =>
        line.startsWith('sectional_replication_lag_seconds') && value > 0 && isMember(world, line))
        .map(({ line, value }) => `${name} has changes that a peer has not confirmed for ${value} s: ${line}`)))).flat()
    if (lagging.length === 0) return findings
    if (world.nowMs > endMs) return lagging
    await world.sleep(apartMs)
  }
}

function isMember({ nodes }: World, line: string): boolean {
  return nodes.some(({ name }) => line.includes(`"${name}"`))
}

/** Every node pushes to a peer that returns, because the peer may return with another disk. */
async function pushedToReturning({ database, world }: DrillContext, away: number): Promise<Findings> {
  await world.stop(away)
  const name = world.node(away).name
  const others = world.nodes.filter(({ number }) => number !== away)
  const pushes = async (): Promise<number[]> => Promise.all(others.map(async ({ number }) =>
    (await metrics(world, number)).filter(({ line }) => line.startsWith(pushesMetric))
      .reduce((sum, { value }) => sum + value, 0)))
  const before = await pushes()
  await world.start(away)
  await world.ready()
  await world.sleep(pushedMs)
  const after = await pushes()
  const { shards } = world.node(1).inside!.control.state()!.databases.get(database)!
  return others.flatMap((other, index) => {
    const shared = shards.filter(({ replicas }) =>
      [name, other.name].every(each => replicas.some(({ node }) => node === each))).length
    const made = after[index]! - before[index]!
    return made >= shared ? [] : [`${other.name} has pushed ${made} shards since ${name} returned, and shares `
      + `${shared} shards of ${database} with it`]
  })
}

/** Returns the values that a node reports. */
async function metrics(
  world: World, number: number,
): Promise<readonly { readonly line: string; readonly value: number }[]> {
  const { body, status } = await world.send(number, 'GET', '/_node/_local/_prometheus')
  if (status !== 200 || typeof body !== 'string') return []
  return body.split('\n').filter(line => line !== '' && !line.startsWith('#'))
    .map(line => ({ line, value: Number(line.slice(line.lastIndexOf(' ') + 1)) }))
}
