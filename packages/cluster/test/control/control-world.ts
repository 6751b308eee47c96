/**
 * Several control planes in one process, with a manual clock, disks that survive crashes, and a network that can be
 * cut.
 */
import { ManualClock, MemoryDisk, MemoryStorage, SeededRandom } from '@sectional/runtime'
import type { Log, LogFields, Metrics, Runtime } from '@sectional/runtime'
import type { PeerIdentity } from '@sectional/core'
import { ControlPlaneNode } from '../../src/control/control-plane-node.ts'
import { defaultControlPlaneOptions } from '../../src/control/control-options.ts'
import type { ControlPlaneOptions } from '../../src/control/control-options.ts'
import { PeerHub } from '../memory-peer-network.ts'

export interface LogLine {
  readonly level: string
  readonly node: string
  readonly message: string
  readonly fields: LogFields
}

interface WorldOptions {
  readonly seed?: number
  readonly seeds?: readonly string[]
  readonly options?: Partial<ControlPlaneOptions>
}

export class ControlWorld {
  readonly clock = new ManualClock()
  readonly hub = new PeerHub({ clock: this.clock })
  readonly lines: LogLine[] = []
  readonly fatal: Error[] = []
  /** Nodes whose replicas were given new histories. */
  readonly renewed: string[] = []
  #restarts: Promise<void> = Promise.resolve()
  readonly #random: SeededRandom
  readonly #seeds: readonly string[]
  readonly #options: ControlPlaneOptions
  readonly #disks = new Map<string, MemoryDisk>()
  readonly #storages = new Map<string, MemoryStorage>()
  readonly #planes = new Map<string, ControlPlaneNode>()

  constructor({ seed = 1, seeds = ['n1', 'n2', 'n3'], options = {} }: WorldOptions = {}) {
    this.#random = new SeededRandom(seed)
    this.#seeds = seeds.map(addressOf)
    this.#options = { ...defaultControlPlaneOptions, ...options }
  }

  plane(name: string): ControlPlaneNode {
    const plane = this.#planes.get(name)
    if (!plane) throw new Error(`${name} is down`)
    return plane
  }

  running(): readonly string[] { return [...this.#planes.keys()] }

  async start(
    name: string,
    overrides: {
      readonly address?: string
      readonly seeds?: readonly string[]
      readonly zone?: string
      readonly options?: Partial<ControlPlaneOptions>
    } = {},
  ): Promise<ControlPlaneNode> {
    const storage = new MemoryStorage(this.disk(name))
    this.#storages.set(name, storage)
    const address = overrides.address ?? addressOf(name)
    const peer: PeerIdentity = { node: name, address, clusterId: null }
    const plane: ControlPlaneNode = new ControlPlaneNode({
      runtime: this.#runtime(name, storage), network: this.hub.attach(peer),
      identity: { node: name, address, zone: overrides.zone ?? null, seeds: overrides.seeds ?? this.#seeds },
      options: { ...this.#options, ...overrides.options },
      replica: () => undefined,
      indexes: () => undefined,
      answer: async question => `${name} answers ${question}`,
      renewReplicas: async () => { this.renewed.push(name) },
      onGivenUp: () => { this.#restarts = this.#restarts.then(() => this.#restart(name, plane, overrides)) },
      onFatal: error => { this.fatal.push(error) },
    })
    await plane.start()
    this.#planes.set(name, plane)
    return plane
  }

  async #restart(
    name: string, plane: ControlPlaneNode, overrides: Parameters<ControlWorld['start']>[1],
  ): Promise<void> {
    if (this.#planes.get(name) !== plane) return
    await plane.stop()
    await this.start(name, overrides)
  }

  async stop(name: string): Promise<void> {
    const plane = this.plane(name)
    this.#planes.delete(name)
    await this.during(plane.stop())
  }

  /** Simulates a power failure: writes that were not synced are lost. */
  async crash(name: string): Promise<void> {
    this.#storages.get(name)?.crash()
    await this.stop(name)
  }

  wipe(name: string): void { this.#disks.delete(name) }

  /** Returns the node's disk, which is empty at first. */
  disk(name: string): MemoryDisk {
    const disk = this.#disks.get(name) ?? new MemoryDisk(this.clock)
    this.#disks.set(name, disk)
    return disk
  }

  /** Replaces a node's disk by a copy. */
  putBack(name: string, copy: MemoryDisk): void { this.#disks.set(name, copy.copy(this.clock)) }

  /** Moves one node's disk to another node. */
  moveDisk(from: string, to: string): void {
    const disk = this.#disks.get(from)
    if (disk) this.#disks.set(to, disk)
    this.wipe(from)
  }

  async stopAll(): Promise<void> {
    for (const name of this.running()) await this.stop(name)
  }

  async advance(ms: number): Promise<void> { await this.clock.advance(ms) }

  /** Advances the clock until the promise settles. */
  async during<T>(work: Promise<T>, limitMs = 60_000): Promise<T> {
    let settled = false
    const mark = (): void => { settled = true }
    work.then(mark, mark)
    await this.until(() => settled, 'a promise settles', limitMs)
    return work
  }

  /** Advances the clock until the condition holds. */
  async until(condition: () => boolean, what: string, limitMs = 60_000): Promise<void> {
    const end = this.clock.monotonic() + limitMs
    for (;;) {
      await this.clock.advance(0)
      if (condition()) return
      if (this.fatal[0]) throw this.fatal[0]
      if (this.clock.monotonic() >= end) {
        const last = this.lines.slice(-30).map(({ node, message, fields }) =>
          `${node} ${message} ${JSON.stringify(fields)}`)
        throw new Error(`after ${limitMs} ms, not yet: ${what}\n${last.join('\n')}`)
      }
      await this.clock.advance(5)
    }
  }

  /** Starts the nodes and waits until all serve. */
  async form(names: readonly string[] = ['n1', 'n2', 'n3']): Promise<void> {
    for (const name of names) await this.start(name)
    await this.serving(names)
    if (names.length <= 5) await this.voting(names)
  }

  async serving(names: readonly string[]): Promise<void> {
    await this.until(() => names.every(name => this.plane(name).unavailableReason() === null
      && names.every(other => this.plane(name).state()?.nodes[other] !== undefined)), `${names.join(', ')} serve`)
  }

  async voting(names: readonly string[]): Promise<void> {
    await this.until(
      () => names.every(name => String(this.plane(name).votingConfiguration()?.voters) === String([...names].sort())),
      `${names.join(', ')} vote`,
    )
  }

  /** Waits until all nodes follow the same leader, and returns it. */
  async leader(among: readonly string[] = this.running()): Promise<string> {
    let leader: string | null = null
    await this.until(() => {
      const leaders = new Set(among.map(name => this.plane(name).leader()))
      leader = [...leaders][0] ?? null
      return leaders.size === 1 && leader !== null
    }, 'all agree on a leader')
    if (leader === null) throw new Error('no leader')
    return leader
  }

  said(name: string, text: string): boolean {
    return this.lines.some(line => line.node === name && line.message.includes(text))
  }

  #runtime(node: string, storage: MemoryStorage): Runtime {
    const seed = Math.floor(this.#random.fraction() * 2 ** 48)
    const parts = {
      clock: this.clock, random: new SeededRandom(seed), storage, log: this.#logOf(node, {}), metrics: silentMetrics,
    }
    return parts as unknown as Runtime
  }

  #logOf(node: string, base: LogFields): Log {
    const write = (level: string) => (fields: LogFields, message: string): void => {
      this.lines.push({ level, node, message, fields: { ...base, ...fields } })
    }
    return {
      debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error'),
      child: fields => this.#logOf(node, { ...base, ...fields }),
    }
  }
}

export function addressOf(name: string): string { return `${name}.test:7000` }

const metric = { add: () => {}, set: () => {}, observe: () => {} }
const silentMetrics: Metrics = {
  counter: () => metric, gauge: () => metric, histogram: () => metric, onCollect: () => {}, render: async () => '',
  samples: async () => [],
}
