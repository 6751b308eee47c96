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

/**
 * Nodes stop to answer just after a write, and crash, one after the other. One of them had to record the write for
 * `_db_updates`, and the others have left it to this node: one of them records it then.
 */
export async function lostRecorderDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids, roles } = await pickShard(context, 3)
  const findings: string[] = []
  for (const [index, lost] of [roles.decider, roles.standIn, roles.third].entries()) {
    const id = ids[index]
    const through = dice.pick(world.nodes.filter(({ number }) => number !== lost)).number
    await world.sleep(settleMs)
    const { body, status } = await world.send(through, 'GET', '/_db_updates')
    if (status !== 200 || id === undefined) continue
    const written = await world.write(through, database, id, { drill: 'recorded' })
    await world.sleep(dice.between(0, pausedMsMax))
    world.pause(lost)
    await world.sleep(beforeCrashMs)
    world.crash(lost)
    const endMs = world.nowMs + recordedMsMax
    const isTold = async (): Promise<boolean> => {
      const answer = await world.send(through, 'GET', `/_db_updates?since=${body.last_seq}`)
      return answer.status === 200 && answer.body.results.some(
        (row: { readonly db_name: string; readonly type: string }) =>
          row.db_name === database && row.type === 'updated')
    }
    let told = written.status !== 201
    while (!told && world.nowMs < endMs) {
      await world.sleep(pollMs)
      told = await isTold()
    }
    if (!told) {
      findings.push(`_db_updates through node ${through} does not tell of the write of ${id}, after which `
        + `${world.node(lost).name} crashed`)
    }
    await world.start(lost)
    await world.ready()
    await world.converge(database)
  }
  return findings
}
