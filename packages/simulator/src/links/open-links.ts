import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'

/** Milliseconds without a frame after which no link and no handshake may be open: 5 s, and a heartbeat's delay. */
const silentMsMax = 8000

/** Examines the connections of nodes. */
export class OpenLinks {
  readonly #world: World
  /** Since when each node has certainly run without a pause. */
  readonly #steady = new Map<SimulatedNode, { readonly pauses: number; readonly sinceMs: number }>()

  constructor(world: World) { this.#world = world }

  /** Demands that no running node keeps a connection on which it has received nothing for long. */
  checkSilent(): void {
    const { nowMs } = this.#world
    for (const node of this.#world.nodes) {
      const steady = this.#steady.get(node)
      if (!node.running || node.paused) this.#steady.delete(node)
      else if (steady?.pauses !== node.pauses) this.#steady.set(node, { pauses: node.pauses, sinceMs: nowMs })
      else if (nowMs - steady.sinceMs > silentMsMax) this.#checkEnds(node)
    }
  }

  #checkEnds(node: SimulatedNode): void {
    const { hub, nowMs } = this.#world
    const silent = hub.endsOf(node.host).find(({ receivedMs }) => nowMs - receivedMs > silentMsMax)
    if (silent === undefined) return
    this.#world.fail('safety', 'silent-links', `${node.name} keeps a connection with ${silent.to}, on which it has `
      + `received nothing for ${Math.round(nowMs - silent.receivedMs)} ms`)
  }

  /** Returns a pair of running nodes that does not have exactly one connection, or undefined. */
  unpaired(): string | undefined {
    const running = this.#world.nodes.filter(node => node.running)
    for (const node of running) {
      const ends = this.#world.hub.endsOf(node.host)
      for (const other of running) {
        const count = ends.filter(({ to }) => to === other.host).length
        if (other !== node && count !== 1) return `${node.name} has ${count} connections with ${other.name}`
      }
    }
    return undefined
  }
}
