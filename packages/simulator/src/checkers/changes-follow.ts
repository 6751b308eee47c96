import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { readChanges } from '../workload/changes-reader.ts'
import type { FeedKind } from '../workload/changes-reader.ts'
import type { Findings } from './final-state.ts'

/** Milliseconds that a feed waits for the change at most. */
const followMs = 20_000
/** Milliseconds after which the change is made, counted from the start of the feed. */
const changeAfterMs = 500

/** When the cluster is at rest, a waiting feed receives a change, whichever node the change was made through. */
export async function changesFollow(world: World, dice: Dice, databases: readonly string[]): Promise<Findings> {
  const findings: string[] = []
  for (const database of databases) {
    const node = dice.pick(world.nodes).number
    const { answer, incarnation } = await readChanges(world, { node, database, since: null, kind: 'normal' })
    if (answer === null || answer.lastToken === null || incarnation === undefined) continue
    const kind = dice.pick<FeedKind>(['longpoll', 'continuous'])
    const since = { token: answer.lastToken, database, incarnation, from: null, rows: [] }
    const followed = readChanges(world, {
      node: dice.pick(world.nodes).number, database, since, kind, timeoutMs: followMs,
      ...(kind === 'continuous' && { limit: 1 }),
    })
    await world.sleep(changeAfterMs)
    // The id has the form that partitioned databases require.
    const id = `followed:${dice.seed()}`
    const { status } = await world.write(dice.pick(world.nodes).number, database, id, { followed: true })
    const told = (await followed).answer?.rows.some(row => row.id === id) ?? false
    if (status === 201 && !told) {
      findings.push(`a ${kind} feed of ${database} was not told of ${id} within ${(followMs - changeAfterMs) / 1000} s`)
    }
  }
  return findings
}
