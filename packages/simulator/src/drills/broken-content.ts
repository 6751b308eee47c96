import { createHash } from 'node:crypto'
import { isSoundBlob } from '@sectional/runtime'
import { blobStoreName } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import type { Answer } from '../world/answer.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const contents = 2
/** Several chunks, each of which has a checksum of its own. */
const contentBytes = { min: 200_000, max: 500_000 }
const slowMs = 60
const repairedMsMax = 60_000
const rangeChance = 0.4
const damageChance = 0.7

/**
 * Attachments are read, or a range of their bytes, whose copy on one node is damaged, while the next node breaks off
 * before it has sent all of its copy. The read goes on with a third copy, or breaks off. The damaged copy is replaced.
 */
export async function readBrokenContents(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, world } = context
  const { ids, roles } = await pickShard(context, contents)
  const findings: string[] = []
  for (const id of ids) {
    const length = dice.integer(contentBytes.min, contentBytes.max)
    const content = contentOf(dice.seed(), length)
    const target = `/${database}/${id}/content`
    const { status } = await world.send(roles.decider, 'PUT', target, undefined, {
      content: { type: 'application/octet-stream', text: content },
    })
    await world.converge(database)
    if (status !== 201) continue
    const reader = dice.pick(world.nodes)
    const hash = createHash('sha256').update(content).digest('hex')
    const blobs = reader.disk.blobs.blobs(blobStoreName)
    const isDamaged = blobs.has(hash) && dice.chance(damageChance)
    if (isDamaged) {
      world.say(`${reader.host}: the blob ${hash} is damaged`)
      disks.damagedBlobs.add(hash)
      reader.disk.blobs.damage(blobStoreName, hash, dice.integer(0, length - 1))
    }
    world.moments.onceSending(reader, node => breakOff(context, reader, node))
    for (const { number } of world.nodes) if (number !== reader.number) world.slow(number, reader.number, slowMs)
    const start = dice.chance(rangeChance) ? dice.integer(0, length - 1) : 0
    const end = start === 0 ? length : dice.integer(start + 1, length)
    const headers: Record<string, string> = start === 0 ? {} : { range: `bytes=${start}-${end - 1}` }
    findings.push(...altered(target, content.slice(start, end), await world.send(
      reader.number, 'GET', target, undefined, { headers },
    )))
    world.moments.cancel()
    await world.sleep(slowMs)
    world.heal()
    for (const { number, running } of world.nodes) if (!running) await world.start(number)
    await world.allReady()
    await world.converge(database)
    // A repair may have failed together with the node that it read.
    findings.push(...altered(target, content, await world.send(reader.number, 'GET', target)))
    if (!isDamaged) continue
    await world.eventually(`${hash} to be replaced on ${reader.name}`, repairedMsMax, async () =>
      isSoundBlob(hash, blobs.get(hash) ?? new Uint8Array(0)) ? null : 'it is damaged')
  }
  return findings
}

/** Returns content of which no part is repeated. */
function contentOf(seed: number, length: number): string {
  const name = `${seed}.`
  const parts = Array.from({ length: Math.ceil(length / name.length) }, (_, index) => `${name}${index} `)
  return parts.join('').slice(0, length)
}

/** The node crashes, or loses its link, when a part of what it sends is on its way. */
function breakOff({ dice, world }: DrillContext, reader: SimulatedNode, node: SimulatedNode): void {
  const crashes = dice.chance(0.5)
  world.queue.schedule(dice.between(0, slowMs), 'a node stops to send content', () => {
    if (crashes) world.crash(node.number)
    else world.kill(reader.number, node.number)
  })
}

function altered(target: string, content: string, { body, kind, status }: Answer): Findings {
  if (kind !== 'answered' || status !== 200 && status !== 206 || body === content) return []
  return [`GET ${target} was answered with ${String(body).length} bytes that are not the ${content.length} bytes of it`]
}
