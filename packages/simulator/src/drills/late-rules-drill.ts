import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

/** Longer than the time for which a node uses design documents without a comparison. */
const confirmedMs = 6000
const begunMs = 100
/** Longer than a write waits for a comparison when the known design documents may be used. */
const lateMs = 1500
const validation = `function (doc) { if (doc.drill === 'refused') throw { forbidden: 'refused' } }`

/**
 * A node compares its design documents with the replicas, whose answers come late. Meanwhile it acknowledges a
 * validation function. From then on it accepts nothing that this function refuses, although the next comparison takes
 * long, too.
 */
export async function lateRulesDrill({ database, dice, number, world }: DrillContext): Promise<Findings> {
  const design = `_design/drill${dice.seed()}`
  const write = (drill: string): ReturnType<typeof world.write> =>
    world.write(number, database, `drill:${dice.seed()}`, { drill })
  await write('accepted')
  await world.sleep(confirmedMs)
  const release = world.moments.holdLists()
  const accepted = write('accepted')
  await world.sleep(dice.wait(begunMs))
  const saved = await world.write(number, database, design, { validate_doc_update: validation })
  release()
  await accepted
  const releaseNext = world.moments.holdLists()
  const refused = write('refused')
  await world.sleep(lateMs)
  releaseNext()
  const { status } = await refused
  await world.send(number, 'DELETE', `/${database}/${design}?rev=${saved.body?.rev}`)
  await world.converge(database)
  return saved.status === 201 && (status === 201 || status === 202)
    ? [`node ${number} answered ${status} for a document that ${design} refuses, which it had acknowledged before`]
    : []
}
