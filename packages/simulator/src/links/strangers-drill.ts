import type { LinkDrillContext } from './link-drill.ts'
import { falseMessages, foreignNode, guestPeer, guestWithName, otherSecret, rivalNode } from './strangers.ts'

/** Processes that are no members try to get a link, or more than a guest may have. */
export async function strangersDrill({ dice, exchanges, node, others, world }: LinkDrillContext): Promise<void> {
  const rival = dice.pick(others)
  await Promise.all([
    foreignNode(world, node), otherSecret(world, node), guestPeer(world, node), falseMessages(world, node, rival),
    rivalNode(world, node, dice.pick([node, rival])),
  ])
  await guestWithName(world, node, rival)
  if (exchanges.linked(node, rival.name)) return
  world.fail('safety', 'links-last', `${node.name} lost its link with ${rival.name} to a rival of the same name`)
}
