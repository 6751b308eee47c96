/** Runs directed scenarios on a simulated world. */
import { documentStoreName, ShardKeys } from '@sectional/server'
import { World } from '../world/world.ts'
import type { WorldOptions } from '../world/world.ts'
import { layoutOf, playScenario } from './index.ts'
import type { Ability, Layout, Scenario, ScenarioAnswer, ScenarioCluster } from './index.ts'

/** Maximum milliseconds of each frame and of each sync of a slow node. */
const slowLinkMs = 400
const slowDiskMs = 300

export class SimulatedCluster implements ScenarioCluster {
  readonly layout: Layout
  readonly abilities: readonly Ability[] = ['fill disk', 'jump clock', 'damage record']
  readonly world: World

  constructor(layout: Layout, world: World) {
    this.layout = layout
    this.world = world
  }

  get running(): readonly number[] {
    return this.world.nodes.filter(node => node.running).map(node => node.number)
  }

  start(node: number): Promise<void> {
    return this.world.start(node)
  }

  stop(node: number): Promise<void> {
    return this.world.stop(node)
  }

  async crash(node: number): Promise<void> {
    this.world.crash(node)
  }

  pause(node: number): void {
    this.world.pause(node)
  }

  continue(node: number): void {
    this.world.continue(node)
  }

  partition(...groups: readonly (readonly number[])[]): void {
    this.world.partition(...groups)
  }

  heal(): void {
    this.world.heal()
  }

  async send(node: number, method: string, path: string, json?: unknown): Promise<ScenarioAnswer> {
    const answer = await this.world.send(node, method, path, json)
    if (answer.kind !== 'answered') throw new Error(`${method} ${path}: no answer of node ${node} (${answer.kind})`)
    return answer
  }

  wait(ms: number): Promise<void> {
    return this.world.sleep(ms)
  }

  async wipe(node: number): Promise<void> {
    this.world.node(node).wipe()
  }

  slow(node: number): void {
    for (const other of this.world.nodes) {
      this.world.slow(node, other.number, slowLinkMs)
      this.world.slow(other.number, node, slowLinkMs)
    }
    this.world.node(node).disk.setFaults({ syncDelayMs: () => slowDiskMs })
  }

  fast(node: number): void {
    for (const other of this.world.nodes) {
      this.world.slow(node, other.number, 0)
      this.world.slow(other.number, node, 0)
    }
    this.world.node(node).disk.setFaults({})
  }

  jumpClock(node: number, ms: number): void {
    this.world.node(node).clock.jump(ms)
  }

  fillDisk(node: number): void {
    this.world.node(node).disk.setFaults({ failWrite: () => 'full' })
  }

  freeDisk(node: number): void {
    this.world.node(node).disk.setFaults({})
  }

  damageDocument(node: number, id: string): void {
    const { disk } = this.world.node(node)
    const isOf = (key: string): boolean =>
      ShardKeys.prefixOf(key) > 0 && ShardKeys.kindOf(key) === 'i' && ShardKeys.text(key) === id
    for (const [key, value] of disk.entries(documentStoreName).filter(([key]) => isOf(key))) {
      disk.damage(
        documentStoreName, key, Uint8Array.from(value, (byte, at) => at === value.length - 1 ? byte ^ 1 : byte),
      )
    }
  }
}

/**
 * Plays one scenario in a new world, and stops the world in good order.
 * @returns the world after it was stopped
 * @throws the error of the scenario, or Error when a node leaves resources behind
 */
export async function simulateScenario(
  scenario: Scenario, seed: number, options: Partial<WorldOptions> = {},
): Promise<World> {
  const layout = layoutOf(scenario)
  const nodeSettings = layout.stranger === null
    ? {}
    : { [layout.stranger]: { cluster: { secret: 'the secret of quite another cluster, as long' } } }
  const world = new World({ ...options, seed, nodes: layout.nodes, seeds: layout.seeds, nodeSettings })
  const cluster = new SimulatedCluster(layout, world)
  await world.run(async () => {
    for (const { number } of world.nodes.slice(0, layout.running)) await world.start(number)
    await playScenario(scenario, cluster)
    await world.stop(...cluster.running)
  })
  for (const node of world.nodes) {
    if (node.leaks.length > 0) throw new Error(`${node.name} left behind: ${node.leaks.join('; ')}`)
  }
  return world
}
