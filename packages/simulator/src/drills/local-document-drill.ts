import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

const edits = 2
const slowMs = 1500

/**
 * A local document is written, deleted and made again, partly while the disk of one node is slow. Each read through any
 * node shows what was acknowledged last.
 */
export async function localDocumentDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, others, number, world } = context
  const id = `_local/drill${dice.seed()}`
  const path = `/${database}/${id}`
  const trouble = disks.of(world.node(number))
  const through = dice.pick(others)
  const findings: string[] = []
  let revision: string | undefined
  for (let edit = 0; edit < edits; edit++) {
    const { body } = await world.send(through, 'PUT', path, { edit, ...(revision && { _rev: revision }) })
    revision = body?.rev
  }
  await world.send(through, 'DELETE', `${path}?rev=${revision}`)
  await world.sleep(slowMs)
  trouble.slowMs = slowMs
  for (const value of ['made again', 'edited']) {
    const { body, status } = await world.send(through, 'PUT', path, {
      value, ...(value === 'edited' && { _rev: revision }),
    })
    revision = body?.rev
    if (status !== 201) break
    for (const node of world.nodes) {
      const read = await world.send(node.number, 'GET', path)
      if (read.status !== 404 && (read.status !== 200 || read.body.value === value)) continue
      findings.push(`${node.name} answered ${read.status} ${JSON.stringify(read.body)} for ${id}, of which "${value}" had `
        + 'been acknowledged by a majority')
    }
  }
  trouble.slowMs = 0
  await world.converge(database)
  return findings
}
