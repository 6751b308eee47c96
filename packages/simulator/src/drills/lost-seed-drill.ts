import { DrillDocuments, readLatest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

export const firstSeed = 1
const awayMs = 1000
const watchedMs = 500

/**
 * The first seed loses its disk while the other nodes run. It joins them, also when its seed list has no other host,
 * and is filled. (`metadata-log` finds a second cluster.)
 */
export async function lostSeedDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  world.crash(number)
  disks.lose(world.node(number))
  await world.sleep(dice.wait(awayMs))
  const edited = await documents.edit()
  await world.start(number)
  await world.ready()
  await world.converge(database)
  return readLatest(context, edited, number, watchedMs)
}
