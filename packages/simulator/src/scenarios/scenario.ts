/** A directed scenario: a short sequence of events that runs on simulated nodes and on real processes. */
import type { Ability, Layout } from './scenario-cluster.ts'
import type { Stage } from './stage.ts'

export interface Scenario {
  /** The behaviour of the cluster as a sentence without its end. */
  readonly name: string
  readonly layout?: Partial<Layout>
  readonly needs?: readonly Ability[]
  readonly run: (stage: Stage) => Promise<void>
}

export function layoutOf({ layout = {} }: Scenario): Layout {
  const nodes = layout.nodes ?? 3
  return { nodes, seeds: layout.seeds ?? nodes, running: layout.running ?? nodes, stranger: layout.stranger ?? null }
}
