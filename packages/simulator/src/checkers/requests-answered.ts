/** Requests of each kind on databases at rest. */
import type { Answer } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { Findings } from './final-state.ts'

/** Links may be opened again meanwhile. A request that could not be answered is repeated that long. */
const answeredMsMax = 60_000
const pollMs = 1000

/**
 * When the cluster is at rest, requests that nothing speaks against succeed, through any node.
 *
 * @param haveRules whether design documents may refuse documents
 */
export async function requestsAnswered(
  world: World, dice: Dice, databases: readonly string[], haveRules: boolean,
): Promise<Findings> {
  /** A repeated request may find its document. */
  const hasWritten = ({ status, body }: Answer): boolean =>
    status === 201 && Array.isArray(body) && body.every(({ error }) =>
      error === undefined || error === 'conflict' || haveRules && error === 'forbidden')
  const findings: string[] = []
  for (const database of databases.filter(name => !name.startsWith('_'))) {
    // The ids have the form that partitioned databases require.
    const id = `answered:${dice.seed()}`
    const leaf = dice.hash()
    const grafted = { _id: id, _rev: `1-${leaf}`, _revisions: { start: 1, ids: [leaf] } }
    const demand = async (
      method: string, path: string, body: unknown, isWanted: (answer: Answer) => boolean,
    ): Promise<void> => {
      const node = dice.pick(world.nodes)
      const endMs = world.nowMs + answeredMsMax
      let answer: Answer
      do {
        answer = await world.send(node.number, method, `/${database}/${path}`, body)
        if (isWanted(answer)) return
        await world.sleep(pollMs)
      } while (world.nowMs < endMs)
      findings.push(`${method} /${database}/${path} ${JSON.stringify(body) ?? ''} through ${node.name} is answered `
        + `${answer.status} ${JSON.stringify(answer.body)} at rest`)
    }
    await demand('POST', '_bulk_docs', { new_edits: false, docs: [grafted] }, hasWritten)
    await demand('POST', '_bulk_docs', { docs: [{ _id: `${id}:2` }] }, hasWritten)
    await demand('PUT', `_local/${id}`, {}, ({ status }) => status === 201)
    await demand('POST', '_revs_diff', { [`${id}:3`]: [`1-${leaf}`] }, ({ status, body }) =>
      status === 200 && body[`${id}:3`]?.missing?.[0] === `1-${leaf}`)
    await demand('POST', '_purge', { [`${id}:3`]: [`1-${leaf}`] }, ({ status, body }) =>
      status === 201 && body.purged[`${id}:3`]?.length === 0)
  }
  return findings
}
