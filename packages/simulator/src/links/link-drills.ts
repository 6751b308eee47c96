/** Faults of links at rest, one after the other, of which nothing else disturbs the effects. */
import type { RpcLimits } from '@sectional/server'
import type { Schedule } from '../plan/schedule.ts'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { Exchange, ExchangePlan } from './exchange.ts'
import type { Exchanges } from './exchanges.ts'
import { foreignNode, manyHandshakes, unreadingPeer } from './strangers.ts'

/** Share of the runs that end with each drill. */
const drillShare = 0.4
const drillMsMax = 600_000
/** Calls of one class that may be open, and how many are left for the node's own calls. */
const callsMax = 40
const callsSpared = 10
const unfinishedMax = 8
const smallLimits: Partial<RpcLimits> = {
  maxCallsOut: callsMax, maxCallsServed: callsMax, maxWaitsOut: callsMax, maxWaitsServed: callsMax,
  maxServedBytes: 20_000, maxQueuedBytes: 65_536, maxUnauthenticated: unfinishedMax,
}
const largeAnswerBytes = 30_000
const largeAnswerCount = 8
const rounds = 2
const roundPauseMs = 200
/** Calls while a node stops: the first half before it begins to. */
const stopCalls = 40
const stopCallPauseMs = 2
const stopCallMs = 20
/** How long a machine without power is off. */
const offMs = { min: 50, max: 600 }
/** Milliseconds since the loss of power, less than the time after which a silent link is closed at the earliest. */
const linkedMsMax = 2900
const pollMs = 100
const lingerMs = 20_000

const quick: ExchangePlan = {
  kind: 'call', timeoutMs: 3000, servedMs: stopCallMs, ownMs: 0, pieces: 1, pieceBytes: 30, leavesAfter: Infinity,
  abortsAfterMs: Infinity, fails: null,
}

interface LinkDrillContext {
  readonly world: World
  readonly dice: Dice
  readonly exchanges: Exchanges
  /** The node that is restarted, and the others, which run. */
  readonly node: SimulatedNode
  readonly others: readonly SimulatedNode[]
}

type LinkDrill = (context: LinkDrillContext) => Promise<void>

/** The drills by name. They need no database, so that they are also made in clusters that cannot spare a node. */
const drills: readonly (readonly [string, LinkDrill])[] = [
  ['links-return', returnDrill], ['links-limited', limitedNodeDrill],
]

/**
 * Makes some of the drills in a cluster at rest.
 *
 * @param after runs after each of them
 * @returns the number of drills
 */
export async function drillLinks(
  { world, dice, exchanges }: Pick<LinkDrillContext, 'world' | 'dice' | 'exchanges'>, schedule: Schedule,
  after: () => Promise<void>,
): Promise<number> {
  let made = 0
  for (const [name, drill] of drills) {
    const drawn = dice.fork(name)
    if (world.nodes.length < 2 || !drawn.chance(drillShare) || !schedule.take(`drill ${name}`)) continue
    const node = drawn.pick(world.nodes)
    world.say(`drill ${name} with node ${node.number}`)
    made++
    const others = world.nodes.filter(other => other !== node)
    await world.run(() => drill({ world, dice: drawn, exchanges, node, others }), drillMsMax)
    await after()
  }
  return made
}

/** A node stops while others call it, and starts with small limits, which its peers and strangers then try. */
async function limitedNodeDrill(context: LinkDrillContext): Promise<void> {
  const { dice, node, others, world } = context
  await stopUnderLoad(context)
  node.linkLimits = smallLimits
  await world.start(node.number)
  node.linkLimits = undefined
  await world.ready()
  for (const [from, to] of [[node, dice.pick(others)], [dice.pick(others), node]] as const) {
    for (const kind of ['call', 'wait'] as const) await budgetsReturn(context, from, to, kind)
  }
  await largeAnswers(context)
  await foreignNode(world, node)
  await unreadingPeer(world, node)
  await manyHandshakes(world, node, unfinishedMax)
}

/** Calls of a node that stops in good order are answered, or certainly not done. */
async function stopUnderLoad({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const calls: Promise<Exchange>[] = []
  let stopped: Promise<void> | undefined
  for (let count = 0; count < stopCalls; count++) {
    if (count === stopCalls / 2) stopped = world.stop(node.number)
    calls.push(exchanges.make(dice.pick(others), node, quick, 'disturbed'))
    await world.sleep(dice.wait(stopCallPauseMs))
  }
  for (const exchange of await Promise.all(calls)) {
    if (exchange.outcome === 'answered' || exchange.nothingDone) continue
    const ended = `${exchange} ended as ${exchange.outcome}, although ${node.name} stopped in good order`
    world.fail('safety', 'stopping-nodes', ended)
  }
  await stopped
}

/**
 * More calls than a link allows are refused, and calls that have ended, in whichever way, no longer count.
 */
async function budgetsReturn(
  { dice, exchanges, world }: LinkDrillContext, from: SimulatedNode, to: SimulatedNode, kind: 'call' | 'wait',
): Promise<void> {
  const make = (count: number, plan: () => ExchangePlan, mode: 'calm' | 'crowded'): Promise<readonly Exchange[]> =>
    Promise.all(Array.from({ length: count }, () => exchanges.make(from, to, plan(), mode)))
  for (let round = 0; round < rounds; round++) {
    await make(callsMax - callsSpared, () => drawShort(dice, kind), 'calm')
    await world.sleep(roundPauseMs)
  }
  const lasting: ExchangePlan = { ...quick, kind, servedMs: Infinity, abortsAfterMs: roundPauseMs }
  const crowd = await make(callsMax + 1, () => lasting, 'crowded')
  await world.sleep(roundPauseMs)
  if (crowd.some(({ outcome }) => outcome === 'overloaded')) return
  const open = `${callsMax + 1} calls (${kind}) from ${from.name} to ${to.name} were open at once`
  world.fail('safety', 'budgets-kept', open)
}

/** Answers for which a link has no room are refused, and nobody is told that these calls did nothing. */
async function largeAnswers({ dice, exchanges, node, others }: LinkDrillContext): Promise<void> {
  const from = dice.pick(others)
  const plan: ExchangePlan = { ...quick, pieceBytes: largeAnswerBytes, requestBytes: 0, servedMs: dice.pick([0, 20]) }
  await Promise.all(Array.from({ length: largeAnswerCount }, () => exchanges.make(from, node, plan, 'crowded')))
}

function drawShort(dice: Dice, kind: 'call' | 'wait'): ExchangePlan {
  const drawn = dice.pick(kind === 'wait' ? ['wait'] as const : ['call', 'call', 'scan', 'upload'] as const)
  const streams = drawn === 'scan' || drawn === 'upload'
  const early = dice.chance(0.4)
  return {
    ...quick, kind: drawn,
    pieces: streams ? dice.pick([1, 6]) : 1,
    leavesAfter: early && streams ? 1 : Infinity,
    servedMs: !streams && dice.chance(0.3) ? Infinity : stopCallMs,
    abortsAfterMs: early && !streams ? dice.between(0, 2 * stopCallMs) : Infinity,
    timeoutMs: dice.pick([200, 500]),
    fails: dice.chance(0.2) ? 'storage' : null,
  }
}

/**
 * A machine loses its power, so that its peers keep their links, and starts again before they notice. The peers find
 * the new process soon, and keep no link with the old one.
 */
async function returnDrill({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const offAtMs = world.nowMs
  world.powerOff(node.number, lingerMs)
  await world.sleep(dice.between(offMs.min, offMs.max))
  const started = world.start(node.number)
  await Promise.all(others.map(async other => {
    for (;;) {
      const { outcome } = await exchanges.make(other, node, { ...quick, timeoutMs: 300 }, 'disturbed')
      const ends = world.hub.endsOf(other.host).filter(({ to }) => to === node.host)
      if (outcome === 'answered' && ends.length === 1) return
      if (world.nowMs - offAtMs > linkedMsMax) {
        return world.fail('safety', 'links-return', `${other.name} has ${ends.length} connections with ${node.name}, `
          + `which started again, and a call ended as ${outcome}`)
      }
      await world.sleep(pollMs)
    }
  }))
  await started
  await world.ready()
}
