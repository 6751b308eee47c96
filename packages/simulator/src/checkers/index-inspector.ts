import { shardKey } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import { IndexReading } from '../views/index-reading.ts'
import { naiveRows } from '../views/naive-view.ts'
import { indexDefinitionOf, swarmIndexes } from '../views/swarm-indexes.ts'
import { sourceOf, swarmViews } from '../views/view-functions.ts'
import { wholeView } from '../views/view-query.ts'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import { openDisk, readReplica } from './disk-contents.ts'
import { mappedBodies } from './used-views.ts'
import { wholeDifference } from './views-exact.ts'

const inspectionsMax = 8
/** Milliseconds after which an inspection is given up, because its node has crashed or is paused, for instance. */
const inspectionMsMax = 20_000

/** The indexes of views and of Mango, with the views that give their rows. */
const inspected = [
  ...swarmViews.map(view => {
    const { map, reduce = null } = sourceOf(view)
    return { view, definition: { kind: 'javascript', map, reduce, options: {} } }
  }),
  ...swarmIndexes.map(index => ({ view: index.view, definition: indexDefinitionOf(index) })),
]

/**
 * Compares single indexes with the documents of their replica while the clients work and faults are active. It counts
 * only when the replica has not changed meanwhile. The documents are read from a copy of the disk.
 */
export class IndexInspector {
  readonly #world: World
  readonly #dice: Dice
  readonly #reading: IndexReading
  /** Number of indexes that were compared. */
  compared = 0

  constructor(world: World, dice: Dice) {
    this.#world = world
    this.#dice = dice
    this.#reading = new IndexReading(world.queue)
  }

  /** @param pauseMs mean milliseconds between two inspections */
  async run(pauseMs: number, isOver: () => boolean): Promise<void> {
    for (let count = 0; count < inspectionsMax; count++) {
      await this.#world.sleep(this.#dice.wait(pauseMs))
      const node = this.#dice.pick(this.#world.nodes)
      if (isOver()) return
      await Promise.race([this.#inspect(node), this.#world.sleep(inspectionMsMax)])
    }
  }

  async #inspect(node: SimulatedNode): Promise<void> {
    const shards = shardsOn(node)
    const { view, definition } = this.#dice.pick(inspected)
    if (shards.length === 0 || node.indexes === undefined) return
    const shard = this.#dice.pick(shards)
    const replica = node.indexes(shard)
    let found
    try {
      await this.#reading.build(replica, definition)
      found = await this.#reading.scan(replica, definition, wholeView)
    } catch (error) {
      this.#world.say(`${node.host}: an index of ${shardKey(shard)} cannot be inspected: ${String(error)}`)
      return
    }
    const { position } = found.head
    const contents = await readReplica(await openDisk(node.disk), node.name, shard)
    const isSame = contents.history === position.history && contents.sequence === position.sequence
    if (!isSame || contents.problems.length > 0) return
    this.compared++
    const problem = wholeDifference(found, naiveRows(view, mappedBodies(contents.documents)))
    if (problem === null) return
    const where = `the index of ${definition.map} on ${node.name}, ${shardKey(shard)}`
    this.#world.fail('safety', 'indexes-exact', `${where} ${problem}`)
  }
}

/** Returns the replicas on the node, without those of the cluster's own databases. */
function shardsOn(node: SimulatedNode): readonly ShardId[] {
  const databases = [...node.inside?.control.state()?.databases.values() ?? []]
  return databases.filter(({ name }) => !name.startsWith('_')).flatMap(({ incarnation, shards }) =>
    shards.filter(({ replicas }) => replicas.some(replica => replica.node === node.name))
      .map(({ range }) => ({ incarnation, range })))
}
