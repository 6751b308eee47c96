/** Faults of links at rest, one after the other, of which nothing else disturbs the effects. */
import type { Schedule } from '../plan/schedule.ts'
import { crossedLinksDrill } from './crossed-links-drill.ts'
import { limitedNodeDrill } from './limited-node-drill.ts'
import { allLinked } from './link-drill.ts'
import type { LinkDrill, LinkDrillContext } from './link-drill.ts'
import { returningNodeDrill } from './returning-node-drill.ts'
import { strangersDrill } from './strangers-drill.ts'
import { tamperedLinkDrill } from './tampered-link-drill.ts'

/** Share of the runs that end with each drill. */
const drillShare = 0.2
const drillMsMax = 600_000

/** The drills by name. They need no database, so that they are also made in clusters that cannot spare a node. */
const drills: Readonly<Record<string, LinkDrill>> = {
  'links-return': returningNodeDrill, 'links-limited': limitedNodeDrill, 'links-crossed': crossedLinksDrill,
  'links-tampered': tamperedLinkDrill, 'links-strangers': strangersDrill,
}

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
  for (const [name, drill] of Object.entries(drills)) {
    const drawn = dice.fork(name)
    if (world.nodes.length < 2 || !drawn.chance(drillShare) || !schedule.take(`drill ${name}`)) continue
    const node = drawn.pick(world.nodes)
    world.say(`drill ${name} with node ${node.number}`)
    made++
    const others = world.nodes.filter(other => other !== node)
    const context = { world, dice: drawn, exchanges, node, others }
    await world.run(async () => {
      await allLinked(context, others)
      await drill(context)
    }, drillMsMax)
    await after()
  }
  return made
}
