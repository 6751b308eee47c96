import type { ClusterState, ControlPlaneNode } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { Operation } from '../workload/history.ts'
import type { Findings } from './final-state.ts'
import { placementFindings } from './placement-rules.ts'

/**
 * The cluster's metadata is one log: all nodes have the same state at the same index, the index of a node only grows,
 * all nodes belong to one cluster, and each acknowledged creation of a database has an incarnation of its own.
 */
export class MetadataLog {
  readonly #world: World
  readonly #states = new Map<number, { readonly node: string; readonly text: string; readonly state: ClusterState }>()
  /** Incarnations that were seen, by database. */
  readonly #incarnations = new Map<string, Set<string>>()
  readonly #clusters = new Set<string>()

  constructor(world: World) {
    this.#world = world
    world.onStarted.add(node => this.#follow(node))
  }

  #follow(node: SimulatedNode): void {
    const control = node.inside!.control as ControlPlaneNode
    let newest = 0
    const look = (): void => {
      const state = control.appliedState()
      if (state === null) return
      if (state.index < newest) {
        this.#world.fail('safety', 'metadata-log', `${node.name} went back from ${newest} to ${state.index}`)
      }
      newest = state.index
      this.#note(node.name, state)
    }
    control.onChange(look)
    look()
  }

  #note(node: string, state: ClusterState): void {
    this.#clusters.add(state.clusterId)
    if (this.#clusters.size > 1) {
      this.#world.fail(
        'safety', 'metadata-log', `${node} belongs to another cluster: ${[...this.#clusters].join(', ')}`,
      )
    }
    for (const { name, incarnation } of state.databases.values()) {
      this.#incarnations.set(name, (this.#incarnations.get(name) ?? new Set()).add(incarnation))
    }
    const text = JSON.stringify({ nodes: state.nodes, databases: [...state.databases], settings: state.settings })
    const known = this.#states.get(state.index)
    if (known === undefined) {
      this.#states.set(state.index, { node, text, state })
      for (const [before, after] of [[state.index - 1, state.index], [state.index, state.index + 1]] as const) {
        const [finding] = placementFindings(this.#states.get(before)?.state, this.#states.get(after)?.state)
        if (finding !== undefined) this.#world.fail('safety', 'metadata-log', `index ${after}: ${finding}`)
      }
    } else if (known.text !== text) {
      this.#world.fail(
        'safety', 'metadata-log', `${known.node} and ${node} differ at index ${state.index}: ${known.text} / ${text}`,
      )
    }
  }

  /** Call this at the end. Each acknowledged creation must have created an incarnation of its own. */
  findings(operations: readonly Operation[]): Findings {
    const created = Map.groupBy(
      operations.filter(({ kind, outcome }) => kind === 'create-database' && outcome === 'done'),
      ({ database }) => database,
    )
    return [...created].flatMap(([database, acknowledged]) => {
      const known = this.#incarnations.get(database)?.size ?? 0
      return acknowledged.length <= known
        ? []
        : [`${acknowledged.length} creations of ${database} were acknowledged, but only ${known} were seen`]
    })
  }
}
