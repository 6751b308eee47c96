import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

const edits = 2
const settleMs = 1000
const slowMs = 4000
const clockBehindMs = 3_600_000

/**
 * A local document is edited, and then, often after all clocks were set back, deleted and made again while the disk of
 * one node is slow or full. Each read through any node shows what was acknowledged last, also after a write when the
 * disk works again.
 */
export async function localDocumentDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, others, number, world } = context
  const id = `_local/drill${dice.seed()}`
  const path = `/${database}/${id}`
  const trouble = disks.of(world.node(number))
  const through = dice.pick(others)
  let revision: string | undefined
  const write = async (edit: number): Promise<number> => {
    const { body, status } = await world.send(through, 'PUT', path, { edit, ...(revision && { _rev: revision }) })
    revision = body?.rev
    return status
  }
  for (let edit = 0; edit < edits; edit++) await write(edit)
  await world.sleep(settleMs)
  const findings: string[] = []
  const readThroughAll = async (edit: number | undefined): Promise<void> => {
    for (const node of world.nodes) {
      const { body, status } = await world.send(node.number, 'GET', path)
      if (status !== 200 && status !== 404 || (status === 200 ? body.edit : undefined) === edit) continue
      findings.push(`${node.name} answered ${status} ${JSON.stringify(body)} for ${id}, of which `
        + `${edit === undefined ? 'the deletion' : `edit ${edit}`} had been acknowledged by a majority`)
    }
  }
  const isBehind = dice.chance(0.5)
  if (isBehind) for (const { clock } of world.nodes) clock.jump(-clockBehindMs)
  if (dice.chance(0.5)) trouble.slowMs = slowMs
  else trouble.full = true
  const { status } = await world.send(through, 'DELETE', `${path}?rev=${revision}`)
  if (status === 200) await readThroughAll(undefined)
  revision = undefined
  for (let edit = edits; edit < 2 * edits; edit++) if (await write(edit) === 201) await readThroughAll(edit)
  trouble.slowMs = 0
  trouble.full = false
  if (await write(2 * edits) === 201) await readThroughAll(2 * edits)
  if (isBehind) for (const { clock } of world.nodes) clock.jump(clockBehindMs)
  await world.converge(database)
  return findings
}
