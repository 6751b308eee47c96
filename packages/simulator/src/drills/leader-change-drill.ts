import type { Findings } from '../checkers/final-state.ts'
import { getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const rounds = 2
const leaderMsMax = 60_000
const deletedMsMax = 60_000
const createMs = 3000
const awayMs = 1500
const acknowledgementsMax = 2
const replacedMsMax = 5000
const pollMs = 100
/** Entries of a leader without followers. */
const replacedMax = 5
/** The default, which every database keeps. */
const purgedInfosLimit = 1000

/**
 * The leader of the metadata log crashes when others have stored a change, before they learn that it is decided. The
 * links of the next leader break when it begins to lead. A change that was acknowledged stays. (`consensus-rules`
 * examines what the nodes say to each other.)
 */
export async function leaderChangeDrill(context: DrillContext): Promise<Findings> {
  const { dice, world } = context
  const findings: string[] = []
  for (let round = 0; round < rounds && findings.length === 0; round++) {
    const path = `/drill${dice.seed()}`
    const leader = world.leader()
    if (leader === undefined) return findings
    let left = dice.integer(1, acknowledgementsMax)
    world.moments.onAcknowledged(node => {
      if (node === leader || --left > 0) return
      world.moments.cancel()
      world.crash(leader.number)
      world.moments.onceLeading(next => breakLinks(context, next.number))
    })
    const { status } = await world.send(leader.number, 'PUT', `${path}?q=1&n=3`, undefined, { timeoutMs: createMs })
    if (leader.running) world.crash(leader.number)
    const running = world.nodes.filter(node => node.running)
    await world.eventually('another leader', leaderMsMax, async () =>
      world.leader(running) !== undefined ? null : 'none yet')
    await world.sleep(dice.wait(awayMs))
    world.moments.cancel()
    await world.start(leader.number)
    await world.ready()
    if (status === 201 || status === 202) findings.push(...await lost(context, path))
    await remove(context, path)
  }
  await replaceEntries(context)
  return findings
}

/**
 * The leader appends more entries than the next leader when it is cut off. It crashes when these have been replaced,
 * and starts with what is on its disk.
 */
async function replaceEntries({ database, dice, world }: DrillContext): Promise<void> {
  const leader = world.leader()
  if (leader === undefined) return
  const others = world.nodes.filter(node => node !== leader)
  world.partition([leader.number], others.map(({ number }) => number))
  const requests = Array.from({ length: dice.integer(2, replacedMax) }, () =>
    world.send(leader.number, 'PUT', `/${database}/_purged_infos_limit`, purgedInfosLimit, { timeoutMs: createMs }))
  await world.eventually('another leader', leaderMsMax, async () =>
    world.leader(others) !== undefined ? null : 'none yet')
  world.moments.onAcknowledged(node => {
    if (node !== leader) return
    world.moments.cancel()
    world.crash(leader.number)
  })
  world.heal()
  await Promise.all(requests)
  // It acknowledges nothing when it gets a snapshot instead.
  for (const endMs = world.nowMs + replacedMsMax; leader.running && world.nowMs < endMs;) await world.sleep(pollMs)
  world.moments.cancel()
  if (leader.running) world.crash(leader.number)
  await world.start(leader.number)
  await world.ready()
}

function breakLinks({ dice, world }: DrillContext, leader: number): void {
  const others = world.nodes.map(({ number }) => number).filter(number => number !== leader)
  for (const other of dice.sample(others, dice.integer(1, others.length))) world.kill(leader, other)
}

async function lost({ world }: DrillContext, path: string): Promise<Findings> {
  const answers = await Promise.all(world.nodes.map(({ number }) => getAtRest(world, number, path)))
  return answers.flatMap(({ status }, index) =>
    status === 404 ? [`node ${index + 1} answered 404 for ${path}, whose creation was acknowledged`] : [])
}

/** The request may have been carried out although it was not answered. */
async function remove({ dice, world }: DrillContext, path: string): Promise<void> {
  await world.eventually(`${path} to be deleted`, deletedMsMax, async () => {
    await world.send(dice.pick(world.nodes).number, 'DELETE', path)
    for (const { number } of world.nodes) {
      const { status } = await world.send(number, 'GET', path)
      if (status !== 404) return `node ${number} answers ${status}`
    }
    return null
  })
}
