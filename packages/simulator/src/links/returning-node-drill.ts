import { smallCall } from './link-drill.ts'
import type { LinkDrillContext } from './link-drill.ts'

/** How long a machine without power is off. */
const offMs = { min: 50, max: 600 }
/** Milliseconds since the loss of power, less than the time after which a silent link is closed at the earliest. */
const linkedMsMax = 2900
const pollMs = 100
const lingerMs = 20_000
/** A node that runs for a shorter time has not yet had time to open its links: its disk was slow when it started. */
const runningMsMin = 1000

/**
 * A machine loses its power, so that its peers keep their links, and starts again before they notice. The peers find
 * the new process soon, and keep no link with the old one.
 */
export async function returningNodeDrill({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const offAtMs = world.nowMs
  world.powerOff(node.number, lingerMs)
  await world.sleep(dice.between(offMs.min, offMs.max))
  let startedMs: number | undefined
  const started = world.start(node.number).then(() => { startedMs = world.nowMs })
  await Promise.all([started, ...others.map(async other => {
    for (;;) {
      const { outcome } = await exchanges.make(other, node, { ...smallCall, timeoutMs: 300 }, 'disturbed')
      const ends = world.hub.endsOf(other.host).filter(({ to }) => to === node.host)
      if (outcome === 'answered' && ends.length === 1) return
      if (world.nowMs - offAtMs > linkedMsMax) {
        if (world.nowMs - (startedMs ?? world.nowMs) < runningMsMin) return
        return world.fail('safety', 'links-return', `${other.name} has ${ends.length} connections with ${node.name}, `
          + `which started again, and a call ended as ${outcome}`)
      }
      await world.sleep(pollMs)
    }
  })])
  await world.ready()
}
