import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const databases = 3
const documents = 10
/** About the time from the request to delete a database until a node has cleared its keys. */
const clearedMs = 60

/**
 * A node crashes while it clears the documents of a deleted database. It clears the rest when it starts again: the
 * checker `space-reclaimed` examines the disks at the end of the run.
 */
export async function droppedShardsDrill({ dice, number, others, world }: DrillContext): Promise<Findings> {
  for (let count = 0; count < databases; count++) {
    const path = `/drill${dice.seed()}`
    const { status } = await world.send(number, 'PUT', `${path}?q=4&n=3`)
    if (status !== 201) return []
    const docs = Array.from({ length: documents }, (_, index) => ({ _id: `${index}` }))
    await world.send(number, 'POST', `${path}/_bulk_docs`, { docs })
    const deletion = world.send(dice.pick(others), 'DELETE', path)
    await world.sleep(dice.between(0, clearedMs))
    world.crash(number)
    await world.start(number)
    await deletion
    await world.allReady()
    await deleteAtRest(world, number, path)
  }
  return []
}
