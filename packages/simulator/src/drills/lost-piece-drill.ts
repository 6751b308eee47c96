import { hasSnapshot } from '../checkers/consensus-rules.ts'
import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

/** More changes than a node keeps in its log when snapshots are small. */
const changes = 30
const messagesMax = 4
const leaderMsMax = 60_000
const knownMsMax = 60_000
const pollMs = 200
/** The default, which every database keeps. */
const purgedInfosLimit = 1000

/**
 * While a node is away, the metadata change so often that it is sent a snapshot. Its links break when one of the
 * pieces, or an answer to one, is sent. The node learns the metadata nevertheless.
 */
export async function lostPieceDrill({ database, dice, number, others, world }: DrillContext): Promise<Findings> {
  const node = world.node(number)
  await world.stop(number)
  const staying = others.map(other => world.node(other))
  await world.eventually('a leader', leaderMsMax, async () =>
    world.leader(staying) !== undefined ? null : 'none yet')
  for (let change = 0; change < changes && hasSnapshot(world.leader(staying)); change++) {
    await world.send(dice.pick(others), 'PUT', `/${database}/_purged_infos_limit`, purgedInfosLimit)
  }
  const lastIndex = Math.max(...staying.map(({ inside }) => inside!.control.state()!.index))
  let left = dice.integer(1, messagesMax)
  world.moments.onTransfer((from, to) => {
    if (from.name !== node.name && to !== node.name || --left > 0) return
    world.moments.cancel()
    for (const other of others) world.kill(number, other)
  })
  await world.start(number)
  const known = (): number => node.inside?.control.state()?.index ?? 0
  for (const endMs = world.nowMs + knownMsMax; known() < lastIndex && world.nowMs < endMs;) await world.sleep(pollMs)
  world.moments.cancel()
  if (known() < lastIndex) {
    return [`${node.name} knows the metadata up to ${known()} ${knownMsMax} ms after its start, and the others knew `
      + `${lastIndex} before`]
  }
  await world.ready()
  await world.converge(database)
  return []
}
