/**
 * Decides what a member does when it connects to a node that has the same secret and belongs to another cluster. Two
 * clusters of the same nodes can exist when a seed node lost its disk and starts while it reaches no other node: it
 * then forms a new cluster. Its clients write to databases that the other nodes do not have.
 *
 * One of the two clusters must stop accepting writes, and it must not be the one that holds the data. The metadata
 * decides:
 *
 * 1. When the other node's cluster has this node as a member, this node is the stray one. It stops accepting writes.
 * 2. When the other node is at an address of the seed list where this node's cluster has no member, and this
 *    node is the only member of its cluster, this node is the stray one. It stops accepting writes.
 * 3. In all other cases this node continues; an error is logged.
 *
 * The second rule does not apply to a cluster of several members, so that one foreign node at a seed's address cannot
 * stop it. A cluster that an operator formed from the data of another one does not yield to that other cluster.
 */
import type { ForeignContact } from '@sectional/core'
import type { Log } from '@sectional/runtime'
import type { ClusterState } from './cluster-state.ts'

/** Number of other clusters that are remembered, so that each is logged once. */
const rememberedMax = 16

export interface ForeignClustersParts {
  readonly node: string
  readonly seeds: readonly string[]
  readonly log: Log
  /** Returns the applied metadata; null while this node is not admitted. */
  readonly state: () => ClusterState | null
}

export class ForeignClusters {
  readonly #parts: ForeignClustersParts
  readonly #met = new Set<string>()
  #reason: string | null = null

  constructor(parts: ForeignClustersParts) { this.#parts = parts }

  /** The reason why this node accepts no writes; null when it accepts them. A reason stays until the process ends. */
  get reason(): string | null { return this.#reason }

  found(contact: ForeignContact): void {
    const { log, node, seeds } = this.#parts
    const state = this.#parts.state()
    if (state === null || contact.peer.clusterId === null) return
    const stray = isStray(contact, { node, seeds, state })
    const key = `${contact.peer.clusterId} ${stray}`
    if (this.#met.has(key) || this.#met.size >= rememberedMax) return
    this.#met.add(key)
    const fields = {
      peer: contact.peer.node, address: contact.peer.address, cluster: contact.peer.clusterId,
      ownCluster: state.clusterId,
    }
    if (!stray) {
      return log.error(
        fields, 'a node of another cluster was met: correct the seed list or the cluster secret of one of the two',
      )
    }
    this.#reason = strayReason(contact, node, state.clusterId)
    log.error(fields, `this node takes no writes any more: ${this.#reason}`)
  }
}

/** Returns whether this node is the one that must stop accepting writes, by the rules above. */
export function isStray(
  { peer, dialed, claimed }: ForeignContact,
  { node, seeds, state }: { readonly node: string; readonly seeds: readonly string[]; readonly state: ClusterState },
): boolean {
  if (peer.clusterId === null || state.replaces?.includes(peer.clusterId)) return false
  if (claimed) return true
  const members = Object.values(state.nodes)
  const alone = members.every(member => member.name === node)
  return alone && dialed !== null && seeds.includes(dialed) && !members.some(member => member.address === dialed)
}

function strayReason({ peer, claimed }: ForeignContact, node: string, ownCluster: string): string {
  const found = claimed
    ? `${peer.node} at ${peer.address} belongs to cluster ${peer.clusterId}, which has ${node} as a member, `
      + `but the data directory here belongs to cluster ${ownCluster}`
    : `the seed list names ${peer.node} at ${peer.address}, which belongs to cluster ${peer.clusterId}, `
      + `but this node formed cluster ${ownCluster}`
  return `${found}. To join that cluster, save what was written to this node, stop it, empty its data directory and `
    + 'start it; otherwise correct the seed lists and restart both'
}
