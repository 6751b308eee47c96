import type { Findings } from '../checkers/final-state.ts'
import { getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const documents = 3
const editsMax = 3
const compactedMsMax = 60_000
const pollMs = 500

/**
 * Documents are edited once or more often, and the database is compacted on request. Then no node shows the content of
 * a replaced revision, and every node shows that of the last one.
 */
export async function compactionDrill({ database, dice, number, world }: DrillContext): Promise<Findings> {
  const replaced: string[] = []
  const latest: string[] = []
  for (let count = 0; count < documents; count++) {
    const id = `drill:${dice.seed()}`
    const revisions: string[] = []
    let isKnown = true
    for (let edit = dice.integer(0, editsMax); isKnown && edit >= 0; edit--) {
      const before = revisions.at(-1)
      const { body, status } = await world.write(number, database, id, { edit, ...(before && { _rev: before }) })
      isKnown = status === 201 || status === 202
      if (isKnown) revisions.push(body.rev)
    }
    const paths = revisions.map(revision => `/${database}/${id}?rev=${revision}`)
    // An edit without an answer may have replaced the last one.
    if (isKnown) latest.push(...paths.slice(-1))
    replaced.push(...paths.slice(0, -1))
  }
  await world.converge(database)
  const { status } = await world.send(number, 'POST', `/${database}/_compact`, {})
  if (status !== 202) return []
  await world.eventually(`${database} to be compacted`, compactedMsMax, async () => {
    const { body } = await getAtRest(world, number, `/${database}`)
    if (body.compact_running === false) return null
    await world.sleep(pollMs)
    return 'it is running'
  })
  const findings: string[] = []
  for (const { name, number: through } of world.nodes) {
    for (const [paths, wanted] of [[replaced, 404], [latest, 200]] as const) {
      for (const path of paths) {
        const answer = await getAtRest(world, through, path)
        if (answer.status === wanted) continue
        findings.push(`GET ${path} through ${name} is answered ${answer.status} after a compaction`)
      }
    }
  }
  return findings
}
