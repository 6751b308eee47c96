/**
 * Decides between two processes that use the same node name. When a process connects under the name of a linked one, it
 * is either the restarted node, whose old link has no process at its other end, or a second process that was given the
 * name by mistake. The old link shows which: a process that still runs answers on it. The linked process therefore
 * keeps its links as long as it answers, and a restarted node is accepted as soon as its old link has failed to answer
 * once.
 */
import type { RpcLimits } from './limits.ts'
import type { HandshakeRefusal, LinkIdentity } from './handshake.ts'
import type { PeerLink } from './peer-link.ts'

export interface RivalCheckParts {
  readonly limits: Pick<RpcLimits, 'rivalProbeMs' | 'silenceMs'>
  /** Returns the open links to a node. */
  readonly linksOf: (node: string) => readonly PeerLink[]
  /** Resolves with whether the far end of a link answers within `timeoutMs` milliseconds. */
  readonly probe: (link: PeerLink, timeoutMs: number) => Promise<boolean>
}

export class RivalCheck {
  readonly #parts: RivalCheckParts

  constructor(parts: RivalCheckParts) { this.#parts = parts }

  /**
   * Resolves with a reason to refuse the newcomer, or null. Returns null directly when no other process has its name.
   */
  admit(newcomer: LinkIdentity): Promise<HandshakeRefusal | null> | null {
    const rivals = this.#parts.linksOf(newcomer.node)
      .filter(({ usable, peer }) => usable && peer.instance !== newcomer.instance && !yields(peer, newcomer))
    return rivals.length === 0 ? null : this.#probe(newcomer, rivals)
  }

  async #probe(newcomer: LinkIdentity, rivals: readonly PeerLink[]): Promise<HandshakeRefusal | null> {
    const { probe, limits } = this.#parts
    const answers = await Promise.all(rivals.map(async link => {
      // Wait longer before a node with an empty disk replaces a member, which may only be busy for a moment.
      const timeoutMs = newcomer.clusterId === null && link.peer.clusterId !== null
        ? limits.silenceMs
        : limits.rivalProbeMs
      return await probe(link, timeoutMs) ? link : null
    }))
    const alive = answers.find(link => link !== null)
    if (!alive) return null
    const reason =
      `a node named ${newcomer.node} is up at ${alive.peer.address}: set another [node] name here, or stop that one`
    return { kind: 'rival', reason }
  }
}

/** Whether the linked process must give way: it was not admitted to any cluster, and the newcomer is a member. */
function yields(linked: LinkIdentity, newcomer: LinkIdentity): boolean {
  return linked.clusterId === null && newcomer.clusterId !== null
}
