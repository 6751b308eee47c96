import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'
import { rolesOf } from './shard-roles.ts'

const edits = 2
/** Edits right after the trouble, while the node catches up. */
const lateEdits = 5
const latePauseMs = 20
const settleMs = 1000
const slowMs = 4000
const clockBehindMs = 3_600_000

/** What goes wrong while the document is deleted and made again. */
interface Trouble {
  /** The node that clients use meanwhile, and the one that they use for the first edit afterwards. */
  readonly through: number
  readonly then: number
  /** Reads would tell the replicas what they lack. */
  readonly unread: boolean
  end(): void | Promise<void>
}

/**
 * A local document is edited, and then, often after all clocks were set back, deleted and made again while one node is
 * away, or its disk is slow or full, or the first replica is told late of what a client writes through another node. It
 * is edited again when that has just ended. Each read through any node shows what was acknowledged last.
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
  const write = async (node = through, read = true): Promise<void> => {
    const edit = written++
    const { body, status } = await world.send(node, 'PUT', path, { edit, ...(revision && { _rev: revision }) })
    revision = body?.rev
    if (status === 201 && read) await readThroughAll(edit)
  }
  for (let edit = 0; edit < edits; edit++) await write()
  await world.sleep(settleMs)
  const isBehind = dice.chance(0.5)
  if (isBehind) for (const { clock } of world.nodes) clock.jump(-clockBehindMs)
  const trouble = await beginTrouble(context, id, through)
  const { status } = await world.send(trouble.through, 'DELETE', `${path}?rev=${revision}`)
  if (status === 200 && !trouble.unread) await readThroughAll(undefined)
  revision = undefined
  for (let edit = 0; edit < edits; edit++) await write(trouble.through, !trouble.unread)
  if (trouble.then !== trouble.through) await write(trouble.then)
  await trouble.end()
  for (let edit = 0; edit < lateEdits; edit++) {
    await write()
    await world.sleep(dice.wait(latePauseMs))
  }
  if (isBehind) for (const { clock } of world.nodes) clock.jump(clockBehindMs)
  await world.converge(database)
  return findings
}

async function beginTrouble(context: DrillContext, id: string, through: number): Promise<Trouble> {
  const { dice, disks, number, world } = context
  const trouble = disks.of(world.node(number))
  const kind = dice.pick(['away', 'slow', 'full', 'unheard', 'unheard'])
  if (kind === 'away') {
    await world.stop(number)
    return { through, then: through, unread: false, end: () => world.start(number) }
  }
  if (kind === 'unheard') return unheard(context, id)
  trouble.slowMs = kind === 'slow' ? slowMs : 0
  trouble.full = kind === 'full'
  return { through, then: through, unread: false, end: () => {
    trouble.slowMs = 0
    trouble.full = false
  } }
}

/** The first replica loses the link to the node that clients use, and the only other way to it is slow. */
function unheard({ database, world }: DrillContext, id: string): Trouble {
  const { decider, standIn, third } = rolesOf(world, database, id)
  world.cut(decider, third)
  world.cut(third, decider)
  world.kill(decider, third)
  world.slow(standIn, decider, settleMs)
  return { through: third, then: decider, unread: true, end: () => world.heal() }
}
