import { shardKey } from '@sectional/core'
import type { ShardId, ShardReplica } from '@sectional/core'
import type { MemoryDisk } from '@sectional/runtime'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { withChanges } from '../world/with-changes.ts'
import type { World } from '../world/world.ts'
import { diskCall, isDamage, openDisk } from './disk-contents.ts'

/** With a smaller `_revs_limit` a replica may have dropped revisions that a checkpoint covers. */
const revsLimitMin = 100

/**
 * A checkpoint says that a replica has all changes of another one up to a sequence. When one is stored, the disks must
 * show that, because nothing but a comparison of digests would ever copy what is missing. A sample is checked.
 */
export class CheckpointsTrue {
  readonly #world: World
  readonly #disks: { readonly damagedRanges: ReadonlySet<unknown> }
  readonly #dice: Dice
  readonly #share: number
  readonly #watched = new WeakMap<ShardReplica, ShardReplica>()

  constructor(world: World, disks: { readonly damagedRanges: ReadonlySet<unknown> }, dice: Dice, share: number) {
    this.#world = world
    this.#disks = disks
    this.#dice = dice
    this.#share = share
    world.observers.add({ replica: (node, shard, replica) => this.#watch(node, shard, replica) })
  }

  #watch(node: SimulatedNode, shard: ShardId, replica: ShardReplica): ShardReplica {
    const known = this.#watched.get(replica)
    if (known !== undefined) return known
    const watched = withChanges<ShardReplica>(replica, {
      storeRevisions: async (request, context) => {
        const reply = await replica.storeRevisions(request, context)
        const { checkpoint } = request
        if (checkpoint !== undefined && (this.#dice.chance(this.#share) || this.#world.moments.takeExamined())) {
          this.#examine(node, shard, checkpoint)
        }
        return reply
      },
    })
    this.#watched.set(replica, watched)
    return watched
  }

  #examine(
    node: SimulatedNode, shard: ShardId, checkpoint: { readonly history: string; readonly sequence: number },
  ): void {
    const database = [...node.inside?.control.state()?.databases.values() ?? []]
      .find(({ incarnation }) => incarnation === shard.incarnation)
    if (database === undefined || database.revsLimit < revsLimitMin) return
    if (this.#disks.damagedRanges.size > 0) return
    const hosts = database.shards.find(({ range }) => shardKey({ ...shard, range }) === shardKey(shard))?.replicas ?? []
    // The copies are made in the turn in which the checkpoint became durable.
    const target = node.disk.copy()
    const others = this.#world.nodes.filter(other => other !== node && hosts.some(host => host.node === other.name))
      .map(other => ({ name: other.name, disk: other.disk.copy() }))
    void this.#compare(node.name, shard, target, others, checkpoint)
  }

  async #compare(
    name: string, shard: ShardId, target: MemoryDisk,
    others: readonly { readonly name: string; readonly disk: MemoryDisk }[],
    { history, sequence }: { readonly history: string; readonly sequence: number },
  ): Promise<void> {
    try {
      const own = (await openDisk(target)).replica(shard)
      for (const other of others) {
        const source = (await openDisk(other.disk)).replica(shard)
        if (own === undefined || source === undefined) continue
        if ((await source.upkeep.replicaInfo(diskCall)).history !== history) continue
        const missing = await lacking(own, source, sequence)
        if (missing.length === 0 || this.#world.moments.falsified.has(shardKey(shard))) return
        this.#world.fail('safety', 'checkpoints-true', `${name} has stored that it has all changes of ${other.name} in `
          + `${shardKey(shard)} up to ${sequence}, and lacks ${missing.join(', ')}`)
        return
      }
    } catch (error) {
      if (!isDamage(error)) throw error
    }
  }
}

/** Returns the leaves of the source, of its changes up to the sequence, that the target does not know. */
async function lacking(target: ShardReplica, source: ShardReplica, sequence: number): Promise<string[]> {
  const purged = new Set<string>()
  for (const replica of [target, source]) {
    for await (const purges of replica.scanPurges(0, diskCall)) for (const { id } of purges) purged.add(id)
  }
  const missing: string[] = []
  for await (const page of source.scanChanges({ since: 0, descending: false, body: false, locals: false }, diskCall)) {
    const asked = page.filter(row => row.sequence <= sequence && row.local !== true && !purged.has(row.id))
      .map(({ id, leaves }) => ({ id, revisions: leaves.map(({ revision }) => revision) }))
    if (asked.length === 0) continue
    for (const diff of await target.diffRevisions(asked, diskCall)) {
      for (const revision of diff.missing) missing.push(`${diff.id} ${revision}`)
    }
  }
  return missing
}
