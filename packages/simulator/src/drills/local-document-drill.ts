import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

const edits = 2
/** Edits right after the trouble, while the node catches up. */
const lateEdits = 5
const latePauseMs = 20
const settleMs = 1000
const slowMs = 4000
const clockBehindMs = 3_600_000

/**
 * A local document is edited, and then, often after all clocks were set back, deleted and made again while one node is
 * away, or its disk is slow or full, and edited again when that has just ended. Each read through any node shows what
 * was acknowledged last.
 */
export async function localDocumentDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, others, world } = context
  const id = `_local/drill${dice.seed()}`
  const path = `/${database}/${id}`
  const through = dice.pick(others)
  let revision: string | undefined
  let written = 0
  const findings: string[] = []
  const readThroughAll = async (edit: number | undefined): Promise<void> => {
    for (const node of world.nodes) {
      const { body, status } = await world.send(node.number, 'GET', path)
      if (status !== 200 && status !== 404 || (status === 200 ? body.edit : undefined) === edit) continue
      findings.push(`${node.name} answered ${status} ${JSON.stringify(body)} for ${id}, of which `
        + `${edit === undefined ? 'the deletion' : `edit ${edit}`} had been acknowledged by a majority`)
    }
  }
  const write = async (): Promise<void> => {
    const edit = written++
    const { body, status } = await world.send(through, 'PUT', path, { edit, ...(revision && { _rev: revision }) })
    revision = body?.rev
    if (status === 201) await readThroughAll(edit)
  }
  for (let edit = 0; edit < edits; edit++) await write()
  await world.sleep(settleMs)
  const isBehind = dice.chance(0.5)
  if (isBehind) for (const { clock } of world.nodes) clock.jump(-clockBehindMs)
  const endTrouble = await beginTrouble(context)
  const { status } = await world.send(through, 'DELETE', `${path}?rev=${revision}`)
  if (status === 200) await readThroughAll(undefined)
  revision = undefined
  for (let edit = 0; edit < edits; edit++) await write()
  await endTrouble()
  for (let edit = 0; edit < lateEdits; edit++) {
    await write()
    await world.sleep(dice.wait(latePauseMs))
  }
  if (isBehind) for (const { clock } of world.nodes) clock.jump(clockBehindMs)
  await world.converge(database)
  return findings
}

/** Begins the trouble of the node. Returns a function that ends it. */
async function beginTrouble({ dice, disks, number, world }: DrillContext): Promise<() => void | Promise<void>> {
  const trouble = disks.of(world.node(number))
  const kind = dice.pick(['away', 'slow', 'full'])
  if (kind === 'away') {
    await world.stop(number)
    return () => world.start(number)
  }
  trouble.slowMs = kind === 'slow' ? slowMs : 0
  trouble.full = kind === 'full'
  return () => {
    trouble.slowMs = 0
    trouble.full = false
  }
}
