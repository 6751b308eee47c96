import { DrillDocuments, editReplaced, endsInOneBranch } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

const fullMs = 1000
/** Milliseconds within which clients edit the replaced revisions, from the moment at which the disk has space again. */
const editedMs = 300
const settleMs = 1000

/** A node whose disk was full lets nobody edit a revision that was replaced while it could not store anything. */
export async function fullDiskDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.sleep(settleMs)
  const trouble = disks.of(world.node(number))
  trouble.full = true
  await world.sleep(dice.wait(fullMs))
  const edited = await documents.edit()
  await world.sleep(dice.wait(fullMs))
  trouble.full = false
  const findings = (await Promise.all(edited.map(document =>
    editReplaced(context, document, dice.pick(world.nodes).number, dice.between(0, editedMs))))).flat()
  await world.allReady()
  await world.converge(database)
  return findings.length > 0 ? findings : endsInOneBranch(context, edited)
}
