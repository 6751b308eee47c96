/** Runs directed scenarios on real processes. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Layout, ScenarioAnswer, ScenarioCluster } from '@sectional/simulator/scenarios'
import { TestCluster } from './test-cluster.ts'
import type { TestNode } from './test-node.ts'

/** Maximum milliseconds that processes wait where simulated time would pass. */
const waitMsMax = 1000
/** A slow process is paused most of the time. */
const pulseStopMs = 300
const pulseRunMs = 100

export class ProcessCluster implements ScenarioCluster {
  readonly layout: Layout
  /** The wall clock and disk of the machine cannot be changed. */
  readonly abilities = []
  readonly #cluster: TestCluster
  readonly #pulses = new Map<number, { stopped: boolean; readonly ended: Promise<void> }>()

  private constructor(layout: Layout, cluster: TestCluster) {
    this.layout = layout
    this.#cluster = cluster
  }

  /** Starts the nodes that the layout wants to run. It does not wait until they serve requests. */
  static async start(layout: Layout): Promise<ProcessCluster> {
    const { nodes, seeds, stranger, running } = layout
    const nodeSettings = stranger === null
      ? {}
      : { [stranger]: { 'cluster/secret': 'the secret of quite another cluster, as long' } }
    const cluster = await TestCluster.prepare({ nodes, seeds, nodeSettings })
    for (const node of cluster.nodes.slice(0, running)) node.start()
    return new ProcessCluster(layout, cluster)
  }

  /** Restores the initial state: all nodes run, none is paused, and all links are open. */
  async restore(): Promise<void> {
    this.heal()
    for (const node of this.#cluster.nodes) {
      await this.#endPulses(node.number)
      node.continue()
      if (!node.running) node.start()
    }
    await this.#cluster.ready()
  }

  close(showLogs: boolean): Promise<void> {
    for (const pulses of this.#pulses.values()) pulses.stopped = true
    return this.#cluster.close(showLogs)
  }

  get running(): readonly number[] {
    return this.#cluster.nodes.filter(node => node.running).map(node => node.number)
  }

  async start(node: number): Promise<void> {
    this.#node(node).start()
  }

  async stop(node: number): Promise<void> {
    await this.#node(node).stop()
  }

  async crash(node: number): Promise<void> {
    await this.#node(node).crash()
  }

  pause(node: number): void {
    this.#node(node).pause()
  }

  continue(node: number): void {
    this.#node(node).continue()
  }

  partition(...groups: readonly (readonly number[])[]): void {
    this.#cluster.partition(...groups)
  }

  heal(): void {
    this.#cluster.heal()
  }

  send(node: number, method: string, path: string, json?: unknown): Promise<ScenarioAnswer> {
    return this.#node(node).http.send(method, path, { json })
  }

  async wait(ms: number): Promise<void> {
    await pause(Math.min(ms, waitMsMax))
  }

  async wipe(node: number): Promise<void> {
    this.#node(node).wipe()
  }

  slow(node: number): void {
    const pulses = { stopped: false, ended: Promise.resolve() }
    this.#pulses.set(node, Object.assign(pulses, { ended: this.#pulse(this.#node(node), pulses) }))
  }

  fast(node: number): void {
    void this.#endPulses(node)
  }

  jumpClock(): void {
    throw new Error('the clock of a real process does not jump')
  }

  fillDisk(): void {
    throw new Error('the disk of a real process is not filled')
  }

  freeDisk(): void {
    throw new Error('the disk of a real process is not filled')
  }

  damageDocument(): void {
    throw new Error('records of a real process are not damaged')
  }

  async #pulse(node: TestNode, pulses: { readonly stopped: boolean }): Promise<void> {
    while (!pulses.stopped) {
      node.pause()
      await pause(pulseStopMs)
      node.continue()
      await pause(pulseRunMs)
    }
  }

  async #endPulses(node: number): Promise<void> {
    const pulses = this.#pulses.get(node)
    if (pulses === undefined) return
    pulses.stopped = true
    await pulses.ended
    this.#pulses.delete(node)
  }

  #node(number: number): TestNode {
    return this.#cluster.node(number)
  }
}
