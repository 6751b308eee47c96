/**
 * A directed scenario: a short story about a cluster, which runs against simulated nodes and against real processes
 * alike.
 */
import type { Ability, Layout } from './scenario-cluster.ts'
import type { Stage } from './stage.ts'

export interface Scenario {
  /** A sentence without its end: what the cluster does. */
  readonly name: string
  readonly layout?: Partial<Layout>
  readonly needs?: readonly Ability[]
  readonly run: (stage: Stage) => Promise<void>
}

export function layoutOf({ layout = {} }: Scenario): Layout {
  const nodes = layout.nodes ?? 3
  return { nodes, seeds: layout.seeds ?? nodes, running: layout.running ?? nodes, stranger: layout.stranger ?? null }
}
