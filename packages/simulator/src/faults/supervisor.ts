import { DamagedControlStoreError } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { FaultyDisks } from './faulty-disks.ts'

const restartMs = 1000

/** Starts nodes again until they run, like the supervisor of a machine. */
export class Supervisor {
  readonly #world: World
  readonly #disks: FaultyDisks
  /** Nodes that must stay down. */
  readonly #down = new Set<SimulatedNode>()
  readonly #starting = new Set<SimulatedNode>()
  readonly #leaving = new Set<SimulatedNode>()

  constructor(world: World, disks: FaultyDisks) {
    this.#world = world
    this.#disks = disks
    world.mayGiveUp = node => {
      if (!disks.wasHit(node)) return false
      world.queue.schedule(restartMs, 'restart', () => this.up(node))
      return true
    }
  }

  /** Number of nodes that an administrator is removing from the cluster. */
  get leaving(): number {
    return this.#leaving.size
  }

  /** Counts the node as leaving while the work runs. */
  async whileLeaving(node: SimulatedNode, work: () => Promise<void>): Promise<void> {
    this.#leaving.add(node)
    try {
      await work()
    } finally {
      this.#leaving.delete(node)
    }
  }

  keepDown(node: SimulatedNode): void {
    this.#down.add(node)
  }

  up(node: SimulatedNode): void {
    this.#down.delete(node)
    if (node.running || this.#starting.has(node)) return
    this.#starting.add(node)
    void this.#start(node).finally(() => this.#starting.delete(node))
  }

  async #start(node: SimulatedNode): Promise<void> {
    while (!node.running && !this.#down.has(node)) {
      try {
        await this.#world.start(node.number)
        if (this.#disks.hasDamagedLog(node) && node.inside !== undefined) {
          return this.#world.fail('safety', 'damaged-log', `${node.name} started although its metadata is damaged`)
        }
      } catch (error) {
        if (this.#disks.hasDamagedLog(node) && error instanceof DamagedControlStoreError) {
          this.#world.say(`${node.host} does not start on damaged metadata: its disk is emptied`)
          this.#disks.lose(node)
          continue
        }
        const text = error instanceof Error ? error.message : String(error)
        this.#world.say(`${node.host} cannot start: ${text}`)
        if (!this.#disks.wasHit(node)) {
          return this.#world.fail(
            'crash', 'start', `${node.name} cannot start although its disk is sound: ${text}`, error,
          )
        }
        await this.#world.sleep(restartMs)
      }
    }
  }
}
