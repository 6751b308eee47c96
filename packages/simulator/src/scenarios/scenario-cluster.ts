/** The interface of a runner of scenarios: simulated nodes or real processes. */

/** Abilities that only some runners have. */
export type Ability = 'jump clock' | 'fill disk' | 'damage record'

/** The nodes of a scenario, which are numbered from 1. */
export interface Layout {
  readonly nodes: number
  /** The first `seeds` nodes are the seed list of every node. Default: all. */
  readonly seeds: number
  /** The first `running` nodes run when the scenario begins. Default: all. */
  readonly running: number
  /** Number of a node that has another cluster secret; null: none. */
  readonly stranger: number | null
}

export interface ScenarioAnswer {
  readonly status: number
  /** Parsed JSON, or the text where it is none. */
  readonly body: any
}

/** The operations of a runner. Numbers identify nodes. */
export interface ScenarioCluster {
  readonly layout: Layout
  readonly abilities: readonly Ability[]
  /** Numbers of the nodes that run, including paused ones. */
  readonly running: readonly number[]
  /** Resolves when the process runs, which may be before it serves requests. */
  start(node: number): Promise<void>
  /** Stops the process in good order. */
  stop(node: number): Promise<void>
  /** Ends the process between two instructions. Data that was not synced is lost. */
  crash(node: number): Promise<void>
  /** Pauses the process; its connections stay open. */
  pause(node: number): void
  continue(node: number): void
  /** Blocks the links between nodes of different groups from now on. */
  partition(...groups: readonly (readonly number[])[]): void
  heal(): void
  /** Sends one request as the administrator. Rejects when there is no complete response. */
  send(node: number, method: string, path: string, json?: unknown): Promise<ScenarioAnswer>
  /** Waits `ms`. Real clusters wait a second at most, so scenarios must not depend on more. */
  wait(ms: number): Promise<void>
  /** Removes all data of the node, which must not run. */
  wipe(node: number): Promise<void>
  /** Delays everything that the node does, until `fast` is called. */
  slow(node: number): void
  fast(node: number): void
  /** Ability `jump clock`: moves the node's wall clock forwards (or backwards) at once. */
  jumpClock(node: number, ms: number): void
  /** Ability `fill disk`: writes of the node fail for lack of space until the disk is freed. */
  fillDisk(node: number): void
  freeDisk(node: number): void
  /** Ability `damage record`: flips a bit of the node's record of the document, in every database that has one. */
  damageDocument(node: number, id: string): void
}
