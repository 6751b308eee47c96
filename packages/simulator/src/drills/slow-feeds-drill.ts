import type { DatabaseRecord, Node } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const feeds = 4
const documents = 12
const slowReadsMs = 40
const takeMsMax = 60
const writeMsMax = 30
const toldMsMax = 30_000

/**
 * Several feeds follow one shard through one node, and read at different speeds, while reads of the disk take time and
 * documents are written one shortly after the other. Each feed tells of each document.
 */
export async function slowFeedsDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, world } = context
  const { ids } = await pickShard(context, documents)
  const reader = dice.pick(world.nodes)
  const { coordinator, control } = reader.inside!
  const record = control.state()!.databases.get(database)!
  const abort = new AbortController()
  const told: Set<string>[] = []
  const begun: Promise<void>[] = []
  const readers = Array.from({ length: feeds }, () => {
    const seen = new Set<string>()
    told.push(seen)
    const { promise, resolve } = Promise.withResolvers<void>()
    begun.push(promise)
    const rest = (): Promise<void> => world.sleep(dice.between(0, takeMsMax))
    return follow(coordinator, record, abort.signal, { seen, rest, onCaughtUp: resolve })
  })
  await Promise.all(begun)
  for (const node of world.nodes) disks.of(node).slowReadsMs = slowReadsMs
  const written: string[] = []
  await Promise.all(ids.map(async (id, index) => {
    await world.sleep(index * dice.between(0, writeMsMax))
    const { status } = await world.write(dice.pick(world.nodes).number, database, id, { drill: 'followed' })
    if (status === 201) written.push(id)
  }))
  const endMs = world.nowMs + toldMsMax
  const isMissed = (seen: Set<string>): boolean => written.some(id => !seen.has(id))
  while (told.some(isMissed) && world.nowMs < endMs) await world.sleep(takeMsMax)
  const findings = told.filter(isMissed).map(seen => `a feed of ${database} that follows through ${reader.name} has `
    + `not told of ${written.filter(id => !seen.has(id)).join(', ')}`)
  for (const node of world.nodes) disks.of(node).slowReadsMs = 0
  abort.abort()
  await Promise.all(readers)
  await world.converge(database)
  return findings
}

interface SlowReader {
  readonly seen: Set<string>
  readonly rest: () => Promise<void>
  readonly onCaughtUp: () => void
}

async function follow(
  coordinator: Node['coordinator'], record: DatabaseRecord, signal: AbortSignal,
  { onCaughtUp, rest, seen }: SlowReader,
): Promise<void> {
  const options = { since: { kind: 'now' } as const, descending: false, limit: null, body: false, follow: true }
  const feed = await coordinator.openChanges(record, options, { requestId: 'drill', signal })
  try {
    for (let event = await feed.next(); event !== null; event = await feed.next()) {
      if (event.kind === 'caught-up') {
        onCaughtUp()
        continue
      }
      await rest()
      for (const row of event.rows) {
        feed.take(event, row)
        seen.add(row.id)
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await feed.close()
  }
}
