import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const settleMs = 2000
/** Milliseconds between the answer to a write and the pause: less than a node waits before it records events. */
const pausedMsMax = 40
/** Longer than the other nodes wait before they leave the record to it. */
const beforeCrashMs = 1500
/** Longer than a node needs to notice that the one that had to record a write is gone. */
const recordedMsMax = 15_000
const pollMs = 500

/** Longer than a node waits before it records events, and than its first attempts to do it again. */
const fullMs = 3000

interface Recorded {
  readonly context: DrillContext
  readonly through: number
  readonly id: string
  /** What happens right after the write. */
  readonly trouble: () => Promise<void>
  readonly after: string
}

/**
 * Nodes stop to answer just after a write, and crash, one after the other. One of them had to record the write for
 * `_db_updates`, and the others have left it to this node: one of them records it then. After a further write, all
 * disks are full for a moment, so that nobody can record it at once.
 */
export async function lostRecorderDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, world } = context
  const { ids, roles } = await pickShard(context, 4)
  const findings: string[] = []
  for (const [index, lost] of [roles.decider, roles.standIn, roles.third].entries()) {
    const id = ids[index]
    const through = dice.pick(world.nodes.filter(({ number }) => number !== lost)).number
    const trouble = async (): Promise<void> => {
      world.pause(lost)
      await world.sleep(beforeCrashMs)
      world.crash(lost)
    }
    if (id !== undefined) {
      findings.push(...await recorded({ context, through, id, trouble, after: `${world.node(lost).name} crashed` }))
    }
    if (!world.node(lost).running) await world.start(lost)
    await world.ready()
    await world.converge(database)
  }
  const [,,, last] = ids
  if (last === undefined) return findings
  const fill = async (): Promise<void> => {
    for (const node of world.nodes) disks.of(node).full = true
    await world.sleep(fullMs)
    for (const node of world.nodes) disks.of(node).full = false
  }
  const through = dice.pick(world.nodes).number
  findings.push(...await recorded({ context, through, id: last, trouble: fill, after: 'all disks were full' }))
  await world.ready()
  await world.converge(database)
  return findings
}

/** Writes a document, and returns a finding when `_db_updates` does not tell of it after the trouble. */
async function recorded({ after, context, id, through, trouble }: Recorded): Promise<Findings> {
  const { database, dice, world } = context
  await world.sleep(settleMs)
  const { body, status } = await world.send(through, 'GET', '/_db_updates')
  if (status !== 200) return []
  const written = await world.write(through, database, id, { drill: 'recorded' })
  await world.sleep(dice.between(0, pausedMsMax))
  await trouble()
  const endMs = world.nowMs + recordedMsMax
  const isTold = async (): Promise<boolean> => {
    const answer = await world.send(through, 'GET', `/_db_updates?since=${body.last_seq}`)
    return answer.status === 200 && answer.body.results.some(
      (row: { readonly db_name: string; readonly type: string }) => row.db_name === database && row.type === 'updated')
  }
  let told = written.status !== 201
  while (!told && world.nowMs < endMs) {
    await world.sleep(pollMs)
    told = await isTold()
  }
  return told ? []
    : [`_db_updates through node ${through} does not tell of the write of ${id}, after which ${after}`]
}
