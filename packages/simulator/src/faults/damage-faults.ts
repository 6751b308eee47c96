/** Bytes on a disk that are not what was written. Checksums must notice, and other replicas must make up for it. */
import { shardKey } from '@sectional/core'
import { activeReplicas, controlStoreName, documentStoreName, blobStoreName, ShardKeys } from '@sectional/server'
import { isDamage, openDisk } from '../checkers/disk-contents.ts'
import { namedBlobs } from '../checkers/named-blobs.ts'
import type { Naming } from '../checkers/named-blobs.ts'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'
import { offWithItsDisk } from './process-faults.ts'

const truncatedShare = 0.2
const replicasMin = 2
/**
 * Whose loss a scrub finds before it does harm that lasts. A row of the changes log is not among them: a reader that
 * passes its place before the next scrub is not told of that change.
 */
const missingKinds: ReadonlySet<string> = new Set(['i', 'b', 'l'])
const missingShare = 0.3

/**
 * A record of one replica is changed, or missing: of a document, a body, a row of the changes log, a local document,
 * counters, checkpoints. Only where others have what it says: two founders and replicas at least, clients that wait for
 * two disks, and no range twice in a run.
 */
export function damageRecord(context: FaultContext): Fault | undefined {
  const { dice, disks, world } = context
  if (!hasOtherCopies(context)) return undefined
  const node = dice.pick(world.nodes)
  return { begin: () => disks.damageLater(async () => {
    const targets = await damageableShards(node)
    const shards = targets.filter(({ range }) => !disks.damagedRanges.has(range))
    if (shards.length === 0 || !hasOtherCopies(context)) return
    const { prefix, range } = dice.pick(shards)
    const kinds = Map.groupBy(node.disk.entries(documentStoreName).filter(([key, value]) =>
      ShardKeys.prefixOf(key) === prefix && value.length > 0), ([key]) => ShardKeys.kindOf(key))
    if (kinds.size === 0) return
    const kind = dice.pick([...kinds.keys()])
    const [key, value] = dice.pick(kinds.get(kind)!)
    disks.damagedRanges.add(range)
    disks.noteDamage(node)
    const missing = missingKinds.has(kind) && dice.fork(`missing ${key}`).chance(missingShare)
    world.say(`${node.host}: a record of kind ${kind} of ${range} is ${missing ? 'missing' : 'damaged'}`)
    node.disk.damage(documentStoreName, key, missing ? undefined : damaged(dice, value))
  }), end: () => {} }
}

/** The content of an attachment on one node that another replica of each shard that names it has too. */
export function damageBlob(context: FaultContext): Fault | undefined {
  const { dice, disks, world } = context
  if (!hasOtherCopies(context)) return undefined
  const node = dice.pick(world.nodes)
  return { begin: () => disks.damageLater(async () => {
    const shared = await sharedBlobs(node, world.nodes.filter(other => other !== node))
    const hashes = shared.filter(hash => !disks.damagedBlobs.has(hash))
    if (hashes.length === 0 || !hasOtherCopies(context)) return
    const hash = dice.pick(hashes)
    disks.damagedBlobs.add(hash)
    disks.noteDamage(node)
    world.say(`${node.host}: the blob ${hash} is damaged`)
    const blobs = node.disk.blobs.blobs(blobStoreName)
    const blob = blobs.get(hash)
    if (blob !== undefined) blobs.set(hash, damaged(dice, blob))
  }), end: () => {} }
}

/** None when a damaged record hides what names them. */
async function sharedBlobs(node: SimulatedNode, others: readonly SimulatedNode[]): Promise<string[]> {
  const named = await namedBlobs(await openDisk(node.disk)).catch((error: unknown) => {
    if (isDamage(error)) return new Map<string, Naming>()
    throw error
  })
  const elsewhere = await Promise.all(others.map(async ({ disk }) => (
    { shards: new Set((await openDisk(disk)).list().map(shardKey)), blobs: disk.blobs.blobs(blobStoreName) }
  )))
  return [...named].filter(([hash, { shards }]) => (
    [...shards].every(shard => elsewhere.some(other => other.shards.has(shard) && other.blobs.has(hash)))
  )).map(([hash]) => hash)
}

/** The metadata on a node's disk while it is down. It must refuse to start; its administrator then empties the disk. */
export function damageLog(context: FaultContext): Fault | undefined {
  const { dice, disks, world } = context
  return offWithItsDisk(context, node => {
    const kinds = Map.groupBy(node.disk.entries(controlStoreName), ([key]) => key[0]!)
    const kind = dice.pick([...kinds.keys()])
    const [key, value] = dice.pick(kinds.get(kind)!)
    world.say(`${node.host}: a record of kind ${kind} of the metadata is damaged`)
    node.disk.damage(controlStoreName, key, damaged(dice, value))
    disks.damageLog(node)
  })
}

/**
 * A node dies, and a damaged log on its disk lacks some of its last writes, or all of them from some moment on. With
 * documents each of its replicas must be replaced; on incomplete metadata the node must refuse to start, and its
 * administrator then empties the disk.
 */
export function loseBatches(context: FaultContext): Fault | undefined {
  const { dice, disks, world } = context
  return offWithItsDisk(context, node => {
    const store = dice.pick([documentStoreName, controlStoreName])
    const length = node.disk.journalLength(store)
    if (length === 0) return
    const from = dice.integer(0, length - 1)
    const to = dice.chance(0.5) ? length : dice.integer(from + 1, length)
    if (!node.disk.loseBatches(store, from, to)) return
    world.say(`${node.host}: batches ${from} to ${to} of the last ${length} of ${store} are missing`)
    if (store === controlStoreName) disks.damageLog(node)
    else disks.noteDamage(node)
  })
}

function hasOtherCopies({ disks, options, supervisor }: FaultContext): boolean {
  return options.founders >= replicasMin && options.w !== 1 && disks.disksLost === 0 && supervisor.leaving === 0
}

/** Shards of which all replicas count, by the node's own word; with their places in its store. */
async function damageableShards(node: SimulatedNode): Promise<{ readonly prefix: number; readonly range: string }[]> {
  const state = node.inside?.control.state()
  const host = await openDisk(node.disk)
  return [...state?.databases.values() ?? []].flatMap(({ incarnation, shards }) => shards.flatMap(shard => {
    const id = { incarnation, range: shard.range }
    const replica = host.replica(id)
    if (replica === undefined || shard.replicas.length < replicasMin
      || activeReplicas(shard).length < shard.replicas.length) {
      return []
    }
    return [{ prefix: replica.records.keys.prefix, range: shardKey(id) }]
  }))
}

/** A bit is flipped, or the end is lost. */
function damaged(dice: Dice, bytes: Uint8Array): Uint8Array {
  if (dice.chance(truncatedShare)) return bytes.slice(0, dice.integer(0, bytes.length - 1))
  const copy = Uint8Array.from(bytes)
  const bit = dice.integer(0, bytes.length * 8 - 1)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}
