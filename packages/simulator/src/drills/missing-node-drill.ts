import type { Findings } from '../checkers/final-state.ts'
import type { Answer } from '../world/answer.ts'
import { DrillDocuments } from './drill.ts'
import type { DrillContext } from './drill.ts'

/** A link to the node may have to be given up, and another leader elected. */
const answeredMsMax = 20_000
const pollMs = 200
/** A revision that no document has. */
const unknownRevision = `1-${'0'.repeat(32)}`

/**
 * While one node is away, or its disk cannot be read, requests through the others are answered as if it were there;
 * through itself, too, when only its disk fails.
 */
export async function missingNodeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  const trouble = disks.of(world.node(number))
  const isRunning = dice.chance(0.5)
  if (isRunning) trouble.failingReads = 1
  else world.crash(number)
  const findings: string[] = []
  const demand = async (
    what: string, method: string, path: string, json: unknown,
    isWanted: (answer: Answer, isRepeated: boolean) => boolean,
  ): Promise<void> => {
    const through = dice.pick(isRunning ? [number, ...others] : others)
    const endMs = world.nowMs + answeredMsMax
    let answer: Answer
    let isRepeated = false
    do {
      answer = await world.send(through, method, `/${database}/${path}`, json)
      if (isWanted(answer, isRepeated)) return
      isRepeated = true
      await world.sleep(pollMs)
    } while (world.nowMs < endMs)
    const state = isRunning ? 'cannot read its disk' : 'is away'
    findings.push(`${what} through node ${through}, while node ${number} ${state}, is answered ${answer.status} `
      + JSON.stringify(answer.body))
  }
  for (const { id, lastRevision } of await documents.edit()) {
    await demand('a read', 'GET', id, undefined, ({ body, status }) => status === 200 && body._rev === lastRevision)
    await demand('a read of all leaves', 'GET', `${id}?open_revs=all`, undefined, ({ body, status }) =>
      status === 200 && body.length === 1 && body[0].ok?._rev === lastRevision)
    await demand('an edit of an unknown revision', 'PUT', id, { _rev: unknownRevision }, ({ status }) => status === 409)
    await demand('_revs_diff', 'POST', '_revs_diff', { [id]: [lastRevision, unknownRevision] }, ({ body, status }) =>
      status === 200 && String(body[id]?.missing) === unknownRevision)
    await demand('a list', 'POST', '_all_docs', { keys: [id] }, ({ body, status }) =>
      status === 200 && body.rows[0].value?.rev === lastRevision)
    await demand('a query by selector', 'POST', '_find', { selector: { _id: id } }, ({ body, status }) =>
      status === 200 && body.docs[0]?._rev === lastRevision)
    // A repeated edit finds its own revision.
    await demand('an edit', 'PUT', id, { _rev: lastRevision, drill: 3 }, ({ status }, isRepeated) =>
      status === 201 || status === 202 || isRepeated && status === 409)
    await demand('a write of a local document', 'PUT', `_local/${id}`, { drill: 1 }, ({ status }) =>
      status === 201 || status === 202)
    await demand('a read of a local document', 'GET', `_local/${id}`, undefined, ({ body, status }) =>
      status === 200 && body.drill === 1)
  }
  await demand('a feed', 'GET', '_changes', undefined, ({ status }) => status === 200)
  trouble.failingReads = 0
  if (!isRunning) await world.start(number)
  await world.allReady()
  await world.converge(database)
  return findings
}
