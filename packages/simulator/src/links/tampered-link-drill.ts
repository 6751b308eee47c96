import type { Dice } from '../world/dice.ts'
import { allLinked } from './link-drill.ts'
import type { LinkDrillContext } from './link-drill.ts'

/** Both ends of an idle link send a frame within this time, and the one after a touched frame shows that. */
const frameMsMax = 3000
const handshakesMs = 2000
const pollMs = 100
/** The first byte of the frames of a handshake by which its steps differ: Hello, Welcome and Proof. */
const handshakeSteps = [0x0a, 0x12, 0x1a]

/**
 * Somebody on the path changes, repeats or omits a frame of an open link, which must close, or changes frames of
 * handshakes, which must open no link.
 */
export async function tamperedLinkDrill(context: LinkDrillContext): Promise<void> {
  const { dice, exchanges, node, others, world } = context
  const other = dice.pick(others)
  const untouched = world.tamper
  exchanges.tampered = true
  if (dice.chance(0.5)) await tamperWithFrame(context, node.host, other.host)
  else await tamperWithHandshakes(context, other.number)
  world.tamper = untouched
  exchanges.tampered = false
  await allLinked(context, [other])
}

async function tamperWithFrame({ dice, world }: LinkDrillContext, from: string, to: string): Promise<void> {
  const end = world.hub.endsOf(to).find(each => each.to === from)
  const kind = dice.pick(['altered', 'repeated', 'omitted'] as const)
  let done = false
  const endMs = world.nowMs + frameMsMax
  world.tamper = (sender, receiver, frame) => {
    if (done || sender !== from || receiver !== to) return [frame]
    done = true
    return kind === 'omitted' ? [] : kind === 'repeated' ? [frame, frame] : [altered(dice, frame)]
  }
  while (!done && world.nowMs < endMs) await world.sleep(pollMs)
  await world.sleep(frameMsMax)
  if (done && end?.isOpen === true) {
    world.fail('safety', 'frames-untouched', `a frame from ${from} to ${to} was ${kind}, and the link is still open`)
  }
}

async function tamperWithHandshakes(context: LinkDrillContext, number: number): Promise<void> {
  const { dice, exchanges, node, world } = context
  const other = world.node(number)
  const step = dice.pick(handshakeSteps)
  const hosts = new Set([node.host, other.host])
  world.tamper = (from, to, frame) =>
    hosts.has(from) && hosts.has(to) && frame[0] === step ? [altered(dice, frame)] : [frame]
  world.kill(node.number, number)
  await world.sleep(handshakesMs)
  if (exchanges.linked(node, other.name) || exchanges.linked(other, node.name)) {
    const opened = `${node.name} and ${other.name} opened a link although frames of their handshake were altered`
    world.fail('safety', 'frames-untouched', opened)
  }
}

/** Returns the frame with one other bit, but with the same first byte. */
function altered(dice: Dice, frame: Uint8Array): Uint8Array {
  const copy = new Uint8Array(frame)
  if (copy.length < 2) return new Uint8Array(0)
  const at = dice.integer(1, copy.length - 1)
  copy[at] = copy[at]! ^ (1 << dice.integer(0, 7))
  return copy
}
