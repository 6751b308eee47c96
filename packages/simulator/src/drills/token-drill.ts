import type { Findings } from '../checkers/final-state.ts'
import { getAtRest, randomRevision } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

/** Longer than a node uses what a replica has reported, and shorter than the time after which replicas push changes. */
const reportedMs = 600
const settleMs = 3000
/** After this time the replicas that run have the changes of each other. */
const pushedMs = 10_000
const call = { timeoutMs: 10_000 }

/**
 * One replica has changes that the others lack yet. A feed reads another replica, whose node then stops. Feeds that go
 * on from its token through any node tell of all changes, and so they do when the node is back.
 */
export async function tokenDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids, roles, shard } = await pickShard(context, 2)
  const [holder, reader] = dice.sample([roles.decider, roles.standIn, roles.third], 2) as [number, number]
  const target = `/${database}/_changes`
  const { revsLimit } = world.node(1).inside!.control.state()!.databases.get(database)!
  await world.write(reader, database, ids[0]!, { drill: 'known to all' })
  await world.sleep(settleMs)
  // From now on the node knows that the other replicas have what its own has.
  await getAtRest(world, reader, target)
  const replica = world.moments.replicaOf(world.node(holder), shard)
  if (replica === undefined) return []
  const revisions = ids.map(id => randomRevision(dice, id))
  await replica.storeRevisions({ revisions, revsLimit }, call)
  await world.sleep(reportedMs)
  const { body: read, status } = await world.send(reader, 'GET', `${target}?style=all_docs`)
  const findings: string[] = []
  const goOn = async (numbers: readonly number[]): Promise<void> => {
    for (const number of status === 200 ? numbers : []) {
      const since = encodeURIComponent(read.last_seq)
      const { body, ...answer } = await getAtRest(world, number, `${target}?style=all_docs&since=${since}`)
      if (answer.status !== 200) continue
      const told = JSON.stringify([read.results, body.results])
      const missed = revisions.filter(({ path }) => !told.includes(path.ids[0]!))
      if (missed.length === 0) continue
      findings.push(`a feed of ${database} through node ${reader}, and one through node ${number} from its token on `
        + `(${read.last_seq}), do not tell of ${missed.map(({ id }) => id).join(', ')} of node ${holder}`)
    }
  }
  await world.stop(reader)
  await world.sleep(pushedMs)
  await goOn(world.nodes.flatMap(({ number }) => number === reader ? [] : [number]))
  await world.start(reader)
  await world.ready()
  await world.converge(database)
  await goOn(world.nodes.map(({ number }) => number))
  return findings
}
