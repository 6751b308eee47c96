import type { SimulatedNode } from '../world/simulated-node.ts'
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
 * attempt. Two links open, of which one is retired. No call is lost by that: as soon as calls are answered again, all
 * later ones are.
 */
export async function crossedLinksDrill({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const other = dice.pick(others)
  const ms = dice.pick(slowMs)
  world.slow(node.number, other.number, ms)
  world.slow(other.number, node.number, ms)
  world.kill(node.number, other.number)
  const directions = [[node, other], [other, node]] as const
  const calls = directions.map(() => [] as Promise<Exchange>[])
  const endMs = world.nowMs + handshakeFrames * ms + watchedMs
  while (world.nowMs < endMs) {
    for (const [index, [from, to]] of directions.entries()) {
      const plan = { ...smallCall, servedMs: dice.pick(callMs), timeoutMs: 8000 }
      calls[index]!.push(exchanges.make(from, to, plan, 'disturbed'))
    }
    await world.sleep(dice.wait(callPauseMs))
  }
  world.heal()
  for (const [index, made] of calls.entries()) lost(await Promise.all(made), directions[index]!)

  function lost(made: readonly Exchange[], [from, to]: readonly [SimulatedNode, SimulatedNode]): void {
    const first = made.findIndex(({ outcome }) => outcome === 'answered')
    const broken = first < 0 ? made.at(-1) : made.slice(first).find(({ outcome }) => outcome !== 'answered')
    if (broken === undefined) return
    const ended = `${broken} ended as ${broken.outcome}, although ${from.name} and ${to.name} were linked again`
    world.fail('safety', 'calls-kept', ended)
  }
  const pairedMs = world.nowMs + pairedMsMax
  const ends = (): number => world.hub.endsOf(node.host).filter(({ to }) => to === other.host).length
  while (ends() !== 1 && world.nowMs < pairedMs) await world.sleep(callPauseMs)
  if (ends() !== 1) world.fail('safety', 'one-link', `${node.name} has ${ends()} connections with ${other.name}`)
}
