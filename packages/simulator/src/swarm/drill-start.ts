import type { Exchanges } from '../links/exchanges.ts'
import { allLinked } from '../links/link-drill.ts'
import type { World } from '../world/world.ts'

const followingMsMax = 60_000

/**
 * Waits until all nodes are linked with each other, follow a leader and have the newest metadata. The drill before may
 * have left the cluster otherwise, and a drill judges its own fault.
 *
 * @throws Failure
 */
export async function restBeforeDrill(world: World, exchanges: Exchanges): Promise<void> {
  for (const node of world.nodes) {
    await allLinked({ world, node, exchanges }, world.nodes.filter(other => other !== node))
  }
  await world.eventually('all nodes to follow a leader and to have its metadata', followingMsMax, async () => {
    const applied = world.nodes.map(({ inside }) => inside?.control.state()?.index ?? 0)
    const newest = Math.max(...applied)
    const behind = world.nodes.find(({ inside }, at) => inside?.control.leader() === null || applied[at]! < newest)
    return behind?.name ?? null
  })
}
