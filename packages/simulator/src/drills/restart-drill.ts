import { DrillDocuments, editReplaced, endsInOneBranch, readLatest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

const awayMs = 3000
/** With the default ticks of the consensus, a node that starts serves at the latest after 3 s (docs/reliability.md). */
const watchedMs = 3500
const settleMs = 1000

/**
 * A node that was away answers, from its first answer on, with what a majority acknowledged meanwhile, and lets nobody
 * edit a revision that was replaced meanwhile.
 */
export async function restartDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.sleep(settleMs)
  await world.stop(number)
  await world.sleep(dice.wait(awayMs))
  const edited = await documents.edit()
  await world.start(number)
  const findings = (await Promise.all([
    readLatest(context, edited, number, watchedMs),
    ...edited.map(document =>
      editReplaced(context, document, dice.pick([number, number, ...others]), dice.between(0, settleMs))),
  ])).flat()
  await world.ready()
  await world.converge(database)
  return findings.length > 0 ? findings : endsInOneBranch(context, edited)
}
