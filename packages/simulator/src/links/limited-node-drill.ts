import type { RpcLimits } from '@sectional/server'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Exchange, ExchangePlan } from './exchange.ts'
import type { ExchangeMode } from './exchanges.ts'
import { allLinked, smallCall } from './link-drill.ts'
import type { LinkDrillContext } from './link-drill.ts'
import { manyHandshakes, unreadingPeer } from './strangers.ts'

/** Calls of one class that may be open, and how many are left for the node's own calls. */
const callsMax = 40
const callsSpared = 10
const unfinishedMax = 8
const streamStallMs = 2000
const smallLimits: Partial<RpcLimits> = {
  maxCallsOut: callsMax, maxCallsServed: callsMax, maxWaitsOut: callsMax, maxWaitsServed: callsMax, streamStallMs,
  maxServedBytes: 20_000, maxQueuedBytes: 65_536, maxUnauthenticated: unfinishedMax,
}
/** Together more than the limit of queued bytes, and of the requests that are served. */
const largeBytes = 30_000
const servedBytes = 9000
const largeCount = 8
const rounds = 2
const largeRounds = 4
const roundPauseMs = 200
/** Calls while a node stops: the first half before it begins to. */
const stopCalls = 40
const stopCallPauseMs = 2
/** Milliseconds in which links stop with calls that wait for a change, and with a call that does not end. */
const stopMsMax = 500
const lateStopMsMax = 1500
/** The delays of slow links, and how long a connection and its handshake take over them at most. */
const slowMs = [20, 100, 300]
const dialedMsMax = 1500

/**
 * A node stops while others call it, and starts with small limits, which its peers and strangers then try. At the end
 * it starts again with the usual ones.
 */
export async function limitedNodeDrill(context: LinkDrillContext): Promise<void> {
  const { dice, node, others, world } = context
  await stopUnderLoad(context)
  await startWith(context, smallLimits)
  for (const [from, to] of [[node, dice.pick(others)], [dice.pick(others), node]] as const) {
    for (const kind of ['call', 'wait'] as const) await budgetsReturn(context, from, to, kind)
    await largeCalls(context, from, to)
  }
  await Promise.all([
    stalledStreams(context), unreadingPeer(world, node).then(() => manyHandshakes(world, node, unfinishedMax)),
  ])
  await stopWhileDialing(context)
  await startWith(context, undefined)
}

/** A node stops while it, or one of the others, opens a connection over a slow link. Nothing stays open. */
async function stopWhileDialing({ dice, node, others, world }: LinkDrillContext): Promise<void> {
  for (const other of others) {
    const ms = dice.pick(slowMs)
    world.slow(node.number, other.number, ms)
    world.slow(other.number, node.number, ms)
    world.kill(node.number, other.number)
  }
  await world.sleep(dice.between(0, dialedMsMax))
  await world.stop(node.number)
  world.heal()
  await world.lateFrames()
}

async function startWith(context: LinkDrillContext, limits: SimulatedNode['linkLimits']): Promise<void> {
  const { node, others, world } = context
  node.linkLimits = limits
  await world.start(node.number)
  node.linkLimits = undefined
  await world.ready()
  await allLinked(context, others)
}

/** Calls of a node that stops in good order are answered, or certainly not done. It does not wait for events. */
async function stopUnderLoad({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const calls: Promise<Exchange>[] = []
  const make = (plan: Partial<ExchangePlan>): Promise<Exchange> =>
    exchanges.make(dice.pick(others), node, { ...smallCall, ...plan }, 'disturbed')
  const hangs = dice.chance(0.3)
  void make({ kind: hangs ? 'call' : 'wait', servedMs: Infinity, timeoutMs: 8000 })
  const network = exchanges.networkOf(node)
  // A change that a peer has proposed to the leader is not decided any more, and its call ends with the links.
  const leads = node.inside?.control.leader() === node.name
  let stopped: Promise<void> | undefined
  for (let count = 0; count < stopCalls; count++) {
    if (count === stopCalls / 2) stopped = world.stop(node.number)
    calls.push(make({}))
    await world.sleep(dice.wait(stopCallPauseMs))
  }
  for (const exchange of await Promise.all(calls)) {
    if (exchange.outcome === 'answered' || exchange.nothingDone) continue
    const ended = `${exchange} ended as ${exchange.outcome}, although ${node.name} stopped in good order`
    world.fail('safety', 'stopping-nodes', ended)
  }
  await stopped
  const tookMs = network.stopTookMs ?? Infinity
  if (tookMs > (hangs || leads ? lateStopMsMax : stopMsMax)) {
    world.fail('safety', 'stopping-nodes', `the links of ${node.name} took ${Math.round(tookMs)} ms to stop`)
  }
}

/** More calls than a link allows are refused, and calls that have ended, in whichever way, no longer count. */
async function budgetsReturn(
  context: LinkDrillContext, from: SimulatedNode, to: SimulatedNode, kind: 'call' | 'wait',
): Promise<void> {
  const { dice, world } = context
  for (let round = 0; round < rounds; round++) {
    await makeMany(context, from, to, callsMax - callsSpared, () => drawShort(dice, kind), 'calm')
    await world.sleep(roundPauseMs)
  }
  const lasting: ExchangePlan = { ...smallCall, kind, servedMs: Infinity, abortsAfterMs: roundPauseMs }
  const crowd = await makeMany(context, from, to, callsMax + 1, () => lasting, 'crowded')
  await world.sleep(roundPauseMs)
  demandRefusal(context, crowd, `${callsMax + 1} calls (${kind})`)
}

/**
 * Requests and answers for which there is no room are refused, and nobody is told that an answered call did nothing.
 * Afterwards there is room again.
 */
async function largeCalls(context: LinkDrillContext, from: SimulatedNode, to: SimulatedNode): Promise<void> {
  const answers = { ...smallCall, pieceBytes: largeBytes, requestBytes: 0, servedMs: 0 }
  const served = to === context.node
  const requests = { ...smallCall, requestBytes: served ? servedBytes : largeBytes }
  for (const plan of served ? [answers, requests] : [requests]) {
    const made = await makeMany(context, from, to, largeCount, () => plan, 'crowded')
    demandRefusal(context, made, `${largeCount} large calls`)
  }
  for (let round = 0; round < largeRounds; round++) {
    await makeMany(context, from, to, 1, () => ({ ...requests, fails: round === 0 ? 'storage' : null }), 'calm')
  }
}

function makeMany(
  { exchanges }: LinkDrillContext, from: SimulatedNode, to: SimulatedNode, count: number, plan: () => ExchangePlan,
  mode: ExchangeMode,
): Promise<readonly Exchange[]> {
  return Promise.all(Array.from({ length: count }, () => exchanges.make(from, to, plan(), mode)))
}

function demandRefusal({ world }: LinkDrillContext, crowd: readonly Exchange[], what: string): void {
  if (crowd.some(({ outcome }) => outcome === 'overloaded')) return
  world.fail('safety', 'budgets-kept', `${what} from ${crowd[0]!.from.name} to ${crowd[0]!.to.name} were open at once`)
}

/** A reader that takes nothing for long, and a sender that sends nothing, lose their streams. */
async function stalledStreams({ dice, exchanges, node, others }: LinkDrillContext): Promise<void> {
  const stalled = { ...smallCall, pieces: 12, ownMs: 1.25 * streamStallMs, servedMs: 0 }
  await Promise.all((['scan', 'upload'] as const).map(kind =>
    exchanges.make(dice.pick(others), node, { ...stalled, kind }, 'stalled')))
}

function drawShort(dice: Dice, kind: 'call' | 'wait'): ExchangePlan {
  const drawn = dice.pick(kind === 'wait' ? ['wait'] as const : ['call', 'call', 'scan', 'upload'] as const)
  const streams = drawn === 'scan' || drawn === 'upload'
  const early = dice.chance(0.4)
  return {
    ...smallCall, kind: drawn,
    pieces: streams ? dice.pick([1, 6]) : 1,
    leavesAfter: early && streams ? 1 : Infinity,
    servedMs: !streams && dice.chance(0.3) ? Infinity : 20,
    abortsAfterMs: early && !streams ? dice.between(0, 40) : Infinity,
    timeoutMs: dice.pick([200, 500]),
    fails: dice.chance(0.2) ? 'storage' : null,
  }
}
