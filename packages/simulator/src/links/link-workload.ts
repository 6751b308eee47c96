import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { ExchangePlan } from './exchange.ts'
import type { Exchanges } from './exchanges.ts'
import type { OpenLinks } from './open-links.ts'

/** Exchanges at rest. */
const restCount = 8
const restPairsMs = 10_000
const pollMs = 250
/** Share of the runs that watch idle links, for longer than a silent link lasts. */
const lastShare = 0.2
const idleMs = 6000
/** Share of the runs in which messages between two nodes exceed 1 MiB several times. */
const largeShare = 0.2
const suspendedMs = 60_000

export interface LinkWorkloadParts {
  readonly world: World
  readonly dice: Dice
  readonly exchanges: Exchanges
  readonly links: OpenLinks
}

/** Makes exchanges between random nodes, during faults and at rest. */
export class LinkWorkload {
  readonly #parts: LinkWorkloadParts

  constructor(parts: LinkWorkloadParts) { this.#parts = parts }

  /** Begins exchanges until the work of the clients is over. */
  async run(pauseMs: number, over: () => boolean): Promise<void> {
    const { world, dice, exchanges, links } = this.#parts
    if (world.nodes.length < 2) return
    for (;;) {
      await world.sleep(dice.wait(pauseMs))
      await world.resumed
      if (over()) return
      links.checkSilent()
      const [from, to] = dice.sample(world.nodes, 2) as [SimulatedNode, SimulatedNode]
      const plan = drawPlan(dice)
      if (exchanges.canBegin(from)) void exchanges.make(from, to, plan, 'disturbed')
    }
  }

  /** When the cluster is at rest, each pair of nodes has one link, and exchanges end as planned. */
  async atRest(): Promise<void> {
    const { world, dice, exchanges, links } = this.#parts
    if (world.nodes.length < 2) return
    links.checkSilent()
    const endMs = world.nowMs + restPairsMs
    for (let reason = links.unpaired(); reason !== undefined; reason = links.unpaired()) {
      if (world.nowMs > endMs) return world.fail('safety', 'one-link', `at rest, ${reason}`)
      await world.sleep(pollMs)
    }
    await Promise.all(Array.from({ length: restCount }, () => {
      const [from, to] = dice.sample(world.nodes, 2) as [SimulatedNode, SimulatedNode]
      return exchanges.make(from, to, drawPlan(dice), 'calm')
    }))
    await this.#roundTrips()
    links.checkSilent()
    if (dice.chance(lastShare)) await this.#linksLast()
  }

  /** All that calls and messages between two nodes have arrives unchanged. */
  async #roundTrips(): Promise<void> {
    const { world, dice, exchanges: { trips } } = this.#parts
    const drawn = dice.fork('round trips')
    const [from, to] = drawn.sample(world.nodes, 2) as [SimulatedNode, SimulatedNode]
    await trips.make(from, to, drawn, drawn.chance(largeShare))
  }

  /** Idle links stay open, also when all machines are suspended. */
  async #linksLast(): Promise<void> {
    const { world, exchanges } = this.#parts
    const lost = exchanges.linksLost
    await world.sleep(idleMs)
    const resume = world.suspend()
    await world.sleep(suspendedMs)
    resume()
    await world.sleep(idleMs)
    if (exchanges.linksLost > lost) {
      world.fail('safety', 'links-last', `at rest, ${exchanges.linksLost - lost} links were lost`)
    }
  }
}

/** More than a window, or more than a frame. */
const largeBytes = { call: 1_200_000, wait: 0, scan: 400_000, upload: 120_000 }

/** Draws what an exchange is to do. */
export function drawPlan(dice: Dice): ExchangePlan {
  const kind = dice.weighted({ call: 4, wait: 2, scan: 4, upload: 4 })!
  const large = dice.chance(0.08)
  const streams = kind === 'scan' || kind === 'upload'
  const pieces = !streams ? 1 : large ? 8 : dice.pick([1, 2, 6, 20, 40])
  const never = dice.chance(0.12)
  const early = dice.chance(0.25)
  const timeoutMs = dice.pick([1000, 3000, 8000])
  return {
    kind, pieces, timeoutMs,
    // The answer to an upload must come within the timeout after the last chunk, and up to all chunks wait then.
    servedMs: never ? Infinity : Math.min(dice.pick([0, 0, 1, 20, 100]), timeoutMs / pieces / 4),
    ownMs: dice.pick([0, 0, 1, 50, large ? 300 : 50]),
    pieceBytes: large ? largeBytes[kind] : dice.pick([20, 300, 5000]),
    leavesAfter: early && streams && !never ? dice.integer(1, pieces) : Infinity,
    abortsAfterMs: early && !streams ? dice.chance(0.2) ? 0 : dice.between(1, 500) : Infinity,
    fails: dice.chance(0.1) ? dice.pick(['storage', 'damaged_blob', 'exhausted'] as const) : null,
  }
}
