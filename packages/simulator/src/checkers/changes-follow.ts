import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { readChanges } from '../workload/changes-reader.ts'
import type { FeedKind, FeedRequest } from '../workload/changes-reader.ts'
import type { FeedPlace } from '../workload/feed-places.ts'
import type { Findings } from './final-state.ts'

/** Milliseconds that a feed waits for the change at most. */
const followMs = 20_000
/** Milliseconds after which the change is made, counted from the start of the feed. */
const changeAfterMs = 500

interface FollowedFeed extends FeedRequest { readonly since: FeedPlace }

/** When the cluster is at rest, a waiting feed receives a change, whichever node the change was made through. */
export async function changesFollow(world: World, dice: Dice, databases: readonly string[]): Promise<Findings> {
  const findings: string[] = []
  for (const database of databases) {
    const node = dice.pick(world.nodes).number
    const { answer, incarnation } = await readChanges(world, { node, database, since: null, kind: 'normal' })
    if (answer === null || answer.lastToken === null || incarnation === undefined) continue
    const kind = dice.pick<FeedKind>(['longpoll', 'continuous'])
    const since = { token: answer.lastToken, database, incarnation, from: null, rows: [] }
    const feed = { node: dice.pick(world.nodes).number, database, since, kind }
    // The id has the form that partitioned databases require.
    const id = `followed:${dice.seed()}`
    const followed = isTold(world, feed, id)
    await world.sleep(changeAfterMs)
    const { status } = await world.write(dice.pick(world.nodes).number, database, id, { followed: true })
    const told = await followed
    if (status === 201 && !told) {
      findings.push(`a ${kind} feed of ${database} was not told of ${id} within ${(followMs - changeAfterMs) / 1000} s`)
    }
  }
  return findings
}

/** Reads a feed until it shows the document. Other rows come before it when an earlier change has been delayed. */
async function isTold(world: World, feed: FollowedFeed, id: string): Promise<boolean> {
  const endMs = world.nowMs + followMs
  for (let since = feed.since; world.nowMs < endMs;) {
    const { answer } = await readChanges(world, {
      ...feed, since, timeoutMs: Math.ceil(endMs - world.nowMs), ...(feed.kind === 'continuous' && { limit: 1 }),
    })
    if (answer === null || answer.lastToken === null || answer.rows.length === 0) return false
    if (answer.rows.some(row => row.id === id)) return true
    since = { ...since, token: answer.lastToken }
  }
  return false
}
