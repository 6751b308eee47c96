import { activeReplicas, eventsDatabase } from '@sectional/server'
import { documentHash, rangeContains } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const rounds = 2
const settleMs = 10_000
/** Longer than a node takes to record a write, and shorter than it uses design documents without a comparison. */
const beforeMs = 2000
/** Shorter than a coordinator waits for an answer before it suspects the node. */
const slowMs = 350
const toldMsMax = 15_000
const pollMs = 5
const idAttempts = 400

/**
 * Two nodes record writes to one database, each those of its own shard. The second one records a write while the record
 * of the first one is still on its way to it. `_db_updates` tells of each write after the write.
 */
export async function staleEventDrill({ dice, world }: DrillContext): Promise<Findings> {
  const name = `events${dice.seed()}`
  const through = dice.pick(world.nodes).number
  const findings: string[] = []
  const [{ status }, created] = [
    await world.send(through, 'GET', '/_db_updates'),
    await world.send(through, 'PUT', `/${name}?q=${world.nodes.length}&n=1`),
  ]
  for (let round = 0; status === 200 && created.status === 201 && round < rounds; round++) {
    const { databases } = world.node(through).inside!.control.state()!
    const [decider, ...followers] = activeReplicas(databases.get(eventsDatabase)!.shards[0]!)
      .map(({ node }) => world.nodes.find(each => each.name === node)!)
    const late = dice.pick(followers)
    const early = dice.pick(world.nodes.filter(node => node !== late))
    const idOn = (node: SimulatedNode): string => {
      const { shards } = databases.get(name)!
      const range = shards.find(({ replicas }) => replicas[0]!.node === node.name)!.range
      for (let attempt = 0; attempt < idAttempts; attempt++) {
        const id = `drill${dice.seed()}`
        if (rangeContains(range, documentHash(id, false))) return id
      }
      throw new Error('no id was drawn in a range')
    }
    /** Waits for a row behind the token. Returns the token of the feed then; undefined when there is none. */
    const told = async (since: string): Promise<string | undefined> => {
      for (const endMs = world.nowMs + toldMsMax; world.nowMs < endMs; await world.sleep(pollMs)) {
        const { body } = await world.send(decider!.number, 'GET', `/_db_updates?since=${encodeURIComponent(since)}`)
        const rows: readonly UpdateRow[] = body?.results ?? []
        if (rows.some(row => row.db_name === name && row.type === 'updated')) return body.last_seq
      }
      return undefined
    }
    // A first write through a node waits for design documents.
    await world.write(late.number, name, idOn(late), { drill: 'told before' })
    await world.sleep(settleMs)
    await world.write(late.number, name, idOn(late), { drill: 'told before' })
    await world.sleep(beforeMs)
    for (const node of world.nodes) if (node !== late) world.slow(node.number, late.number, slowMs)
    let token: string | undefined = (await world.send(decider!.number, 'GET', '/_db_updates')).body.last_seq
    for (const node of [early, late]) {
      const id = idOn(node)
      const written = await world.write(node.number, name, id, { drill: 'told' })
      if (written.status !== 201 || token === undefined) break
      token = await told(token)
      if (token === undefined) findings.push(`_db_updates does not tell of the write of ${id} through ${node.name}`)
    }
    world.heal()
    await world.ready()
  }
  await deleteAtRest(world, through, `/${name}`)
  return findings
}

interface UpdateRow {
  readonly db_name: string
  readonly type: string
}
