import type { Exchange } from './exchange.ts'
import { smallCall } from './link-drill.ts'
import type { LinkDrillContext } from './link-drill.ts'

const slowMs = [100, 300]
const watchedMs = 2000
/** A connection and its handshake take six frames. */
const handshakeFrames = 8
const callPauseMs = 80
const callMs = [50, 300]
const pairedMsMax = 10_000

/**
 * The connections of two nodes break while their links are slow, so that both dial before they learn of each other's
 * attempt. Two links open, of which one is retired. No call that was begun on either of them is lost by that.
 */
export async function crossedLinksDrill({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const other = dice.pick(others)
  const ms = dice.pick(slowMs)
  world.slow(node.number, other.number, ms)
  world.slow(other.number, node.number, ms)
  world.kill(node.number, other.number)
  await world.sleep(callPauseMs)
  const calls: Promise<Exchange>[] = []
  const endMs = world.nowMs + handshakeFrames * ms + watchedMs
  while (world.nowMs < endMs) {
    const plan = { ...smallCall, servedMs: dice.pick(callMs), timeoutMs: 8000 }
    calls.push(exchanges.make(node, other, plan, 'disturbed'), exchanges.make(other, node, plan, 'disturbed'))
    await world.sleep(dice.wait(callPauseMs))
  }
  world.heal()
  const broken = (await Promise.all(calls)).find(({ outcome, nothingDone }) => outcome !== 'answered' && !nothingDone)
  if (broken) world.fail('safety', 'calls-kept', `${broken} ended as ${broken.outcome}, although no link broke`)
  const pairedMs = world.nowMs + pairedMsMax
  const ends = (): number => world.hub.endsOf(node.host).filter(({ to }) => to === other.host).length
  while (ends() !== 1 && world.nowMs < pairedMs) await world.sleep(callPauseMs)
  if (ends() !== 1) world.fail('safety', 'one-link', `${node.name} has ${ends()} connections with ${other.name}`)
}
