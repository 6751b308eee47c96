import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { ExchangePlan } from './exchange.ts'
import type { Exchanges } from './exchanges.ts'

export interface LinkDrillContext {
  readonly world: World
  readonly dice: Dice
  readonly exchanges: Exchanges
  /** The node that the drill concerns, and the others. All of them run. */
  readonly node: SimulatedNode
  readonly others: readonly SimulatedNode[]
}

export type LinkDrill = (context: LinkDrillContext) => Promise<void>

/** A small call that is answered after a moment. */
export const smallCall: ExchangePlan = {
  kind: 'call', timeoutMs: 3000, servedMs: 20, ownMs: 0, pieces: 1, pieceBytes: 30, leavesAfter: Infinity,
  abortsAfterMs: Infinity, fails: null,
}

const linkedMsMax = 15_000
const pollMs = 100

/** Waits until the node is linked with each of the others, and no frame is late. */
export async function allLinked(
  { exchanges, node, world }: Pick<LinkDrillContext, 'exchanges' | 'node' | 'world'>, others: readonly SimulatedNode[],
): Promise<void> {
  await world.lateFrames()
  const endMs = world.nowMs + linkedMsMax
  const missing = (): SimulatedNode | undefined =>
    others.find(other => !exchanges.linked(node, other.name) || !exchanges.linked(other, node.name))
  while (missing() && world.nowMs < endMs) await world.sleep(pollMs)
  const other = missing()
  if (other) world.fail('safety', 'links-return', `${node.name} and ${other.name} have no link`)
}
