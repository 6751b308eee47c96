/** Lets nodes compare their replicas by digests, which they do about once an hour. */
import type { World } from '../world/world.ts'

/** Longer than a node takes to compare all its shards. */
const roundMs = 80 * 60_000
/** Longer than a comparison takes. */
const comparisonMs = 2000

/** Suspends all nodes for some simulated time, and waits until they are ready again. */
export async function suspendFor(world: World, ms: number): Promise<void> {
  const resume = world.suspend()
  await world.sleep(ms)
  resume()
  await world.ready()
}

/**
 * Lets the nodes compare their replicas by digests until `equal` resolves to true, or until all replicas were compared.
 * A node compares one shard after the other, with a pause before each. A timer that becomes due during a suspension
 * fires once, so there is about one suspension for each shard.
 */
export async function digestRound(world: World, equal: () => Promise<boolean>): Promise<void> {
  const { databases } = world.node(1).inside!.control.state()!
  const shards = [...databases.values()].reduce((sum, database) => sum + database.shards.length, 0)
  // A node with few of the shards makes longer pauses, of which each ends only with a suspension.
  for (let suspensions = 0; suspensions < 2 * shards && !await equal(); suspensions++) {
    await suspendFor(world, roundMs / shards)
    await world.sleep(comparisonMs)
  }
}
