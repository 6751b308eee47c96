/** Damages bytes on a disk. Checksums must detect the damage, and the node must repair it from other replicas. */
import { shardKey } from '@sectional/core'
import { MemoryStorage } from '@sectional/runtime'
import type { StoreEntry } from '@sectional/runtime'
import {
  activeReplicas, blobStoreName, controlStoreName, documentStoreName, indexStoreName, RaftStorage, ShardKeys,
} from '@sectional/server'
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
 * Kinds of records whose loss a scrub finds before it causes permanent harm. Rows of the changes log are not among
 * them: a reader that passes such a row before the next scrub misses the change.
 */
const missingKinds: ReadonlySet<string> = new Set(['i', 'b', 'l'])
const missingShare = 0.6

/**
 * Damages or removes one record of one replica: of a document, a body, a row of the changes log, a local document,
 * counters or checkpoints. Other replicas must have the same data, so this needs at least as many founders and replicas
 * as `replicasMin` and clients that wait for two disks, and it damages each range only once in a run.
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

/** Damages one record in the store of indexes of a node, which must build what it lacks again. */
export function damageIndex({ dice, disks, world }: FaultContext): Fault | undefined {
  const node = dice.pick(world.nodes)
  const kinds = Map.groupBy(
    node.disk.entries(indexStoreName).filter(([, value]) => value.length > 0), ([key]) => ShardKeys.kindOf(key),
  )
  if (kinds.size === 0) return undefined
  const kind = dice.pick([...kinds.keys()])
  const [key, value] = dice.pick(kinds.get(kind)!)
  return { begin: () => {
    disks.damagedIndexes++
    world.say(`${node.host}: a record of kind ${kind} of the indexes is damaged`)
    node.disk.damage(indexStoreName, key, damaged(dice, value))
  }, end: () => {} }
}

/** Damages a blob on one node. Another replica of each shard that refers to the blob must have it. */
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

/** Returns blobs that other nodes have too; none when a damaged record hides what refers to them. */
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

/** Damages the metadata on the disk of a stopped node. The node must refuse to start; its disk is then emptied. */
export function damageLog(context: FaultContext): Fault | undefined {
  const { dice, disks, world } = context
  return offWithItsDisk(context, node => disks.damageLater(async () => {
    const kinds = Map.groupBy(await metadataInEffect(node), ([key]) => key[0]!)
    // Another fault has ended at the same moment, so that the node was started.
    if (node.running) return
    const kind = dice.pick([...kinds.keys()])
    const [key, value] = dice.pick(kinds.get(kind)!)
    world.say(`${node.host}: a record of kind ${kind} of the metadata is damaged`)
    node.disk.damage(controlStoreName, key, damaged(dice, value))
    disks.damageLog(node)
  }))
}

/**
 * Returns the records of the metadata without the remains of interrupted writes: entries and chunks that a snapshot has
 * replaced, and chunks of a snapshot that did not take effect. A start removes such remains whether or not they are
 * damaged.
 */
async function metadataInEffect(node: SimulatedNode): Promise<StoreEntry[]> {
  const copy = node.disk.copy()
  const store = await new MemoryStorage(copy).open(controlStoreName)
  await new RaftStorage(store).load()
  return copy.entries(controlStoreName)
}

/**
 * Crashes a node and removes batches from a log on its disk: some of its last writes, or all writes from some moment
 * on. If the log stores documents, the node must rebuild each of its replicas. If it stores metadata, the node must
 * refuse to start; its disk is then emptied.
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

/** Returns the shards of which all replicas count, according to the node, with their prefix in its store. */
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

/** Flips a bit, or truncates the value. */
function damaged(dice: Dice, bytes: Uint8Array): Uint8Array {
  if (dice.chance(truncatedShare)) return bytes.slice(0, dice.integer(0, bytes.length - 1))
  const copy = Uint8Array.from(bytes)
  const bit = dice.integer(0, bytes.length * 8 - 1)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}
