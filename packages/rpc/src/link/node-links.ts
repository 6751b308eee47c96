import type { LinkIdentity } from './handshake.ts'
import type { PeerLink } from './peer-link.ts'

/**
 * The open links to one node, oldest first. Usually there is one link, and there are two when both sides dialed at the
 * same time. Both ends prefer the link that the node with the smaller name dialed, and the newest of several such.
 */
export class NodeLinks {
  readonly #selfNode: string
  readonly #links: PeerLink[] = []

  constructor(selfNode: string) { this.#selfNode = selfNode }

  get count(): number { return this.#links.length }

  /** The node's identity, as its newest link has it. */
  get identity(): LinkIdentity | undefined { return this.#links.at(-1)?.peer }

  all(): readonly PeerLink[] { return [...this.#links] }

  add(link: PeerLink): void { this.#links.push(link) }

  remove(link: PeerLink): void {
    const at = this.#links.indexOf(link)
    if (at >= 0) this.#links.splice(at, 1)
  }

  /** Returns the link for new calls; undefined: no link can be used. */
  best(): PeerLink | undefined {
    const usable = this.#links.filter(link => link.usable)
    return usable.findLast(link => link.dialed === (this.#selfNode < link.peer.node)) ?? usable.at(-1)
  }

  /** Retires all links but the best one. Each of them closes when its calls have ended. */
  retireOthers(): void {
    const best = this.best()
    for (const link of this.all()) {
      if (best && link !== best) link.retire()
    }
  }
}
