/** What runs a scenario: simulated nodes or real processes. */

/** What not every runner can do to a node. */
export type Ability = 'jump clock' | 'fill disk' | 'damage record'

/** Nodes are numbered from 1. */
export interface Layout {
  readonly nodes: number
  /** The first so many nodes are the seed list of every node. Default: all. */
  readonly seeds: number
  /** The first so many nodes run when the scenario begins. Default: all. */
  readonly running: number
  /** Number of a node that has another cluster secret. */
  readonly stranger: number | null
}

export interface ScenarioAnswer {
  readonly status: number
  /** Parsed JSON, or the text where it is none. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any
}

/** What a runner does; numbers name nodes. */
export interface ScenarioCluster {
  readonly layout: Layout
  readonly abilities: readonly Ability[]
  /** Numbers of the nodes that run, paused ones included. */
  readonly running: readonly number[]
  /** Resolves when the process runs; when it serves is another question. */
  start(node: number): Promise<void>
  /** In order. */
  stop(node: number): Promise<void>
  /** Between two instructions; what was not synced is lost. */
  crash(node: number): Promise<void>
  /** The process stands still, its connections stay open. */
  pause(node: number): void
  continue(node: number): void
  /** Links between nodes of different groups carry nothing from now on. */
  partition(...groups: readonly (readonly number[])[]): void
  heal(): void
  /** One request as the administrator. Rejects when there is no whole answer. */
  send(node: number, method: string, path: string, json?: unknown): Promise<ScenarioAnswer>
  /** Lets that much time pass. Real clusters cut it short after a second: nothing may depend on more. */
  wait(ms: number): Promise<void>
  /** The node, which does not run, loses all its data. */
  wipe(node: number): Promise<void>
  /** The node does everything late from now on, until it is `fast` again. */
  slow(node: number): void
  fast(node: number): void
  /** `jump clock`: the node's wall clock goes forward (or back) at once. */
  jumpClock(node: number, ms: number): void
  /** `fill disk`: writes of that node find no room from now on, until the disk is freed. */
  fillDisk(node: number): void
  freeDisk(node: number): void
  /** `damage record`: a bit of the node's record of that document flips, in every database that has one. */
  damageDocument(node: number, id: string): void
}
