import { ReplicaError } from '@sectional/core'
import type { DocumentRevision, ShardReplica } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { randomRevision } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

/** A document is repaired again when its replicas differ again. */
const rounds = 2
const branches = 2
/** Replicas push changes after 2 s. */
const repairedMsMax = 1000
const pollMs = 20
const call = { timeoutMs: 10_000 }

/**
 * One replica has branches of a document that the others lack, so that `_revs_diff` asks for them. A read that asks all
 * replicas shows them, and brings them to the others soon, whichever node reads, and as often as it happens.
 */
export async function readRepairDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids: [id], shard } = await pickShard(context, 1)
  const { revsLimit, shards } = world.node(1).inside!.control.state()!.databases.get(database)!
  const { replicas } = shards.find(({ range }) => range.begin === shard.range.begin)!
  const reader = dice.pick(world.nodes)
  const findings: string[] = []
  const stored: string[] = []
  for (let round = 0; round < rounds && findings.length === 0; round++) {
    const revisions = Array.from({ length: branches }, (): DocumentRevision => randomRevision(dice, id!))
    stored.push(...revisions.map(({ path }) => `1-${path.ids[0]}`))
    const all = world.nodes.filter(({ name }) => replicas.some(({ node }) => node === name))
      .flatMap(node => world.moments.replicaOf(node, shard) ?? [])
    if (all.length < replicas.length) return []
    await dice.pick(all).storeRevisions({ revisions, revsLimit }, call)
    const diff = await world.send(reader.number, 'POST', `/${database}/_revs_diff`, { [id!]: stored })
    const asked: readonly string[] = diff.body?.[id!]?.missing ?? []
    const known = stored.slice(-branches).filter(revision => !asked.includes(revision))
    if (diff.status === 200 && known.length > 0) {
      findings.push(`_revs_diff does not ask for ${known.join(', ')} of ${id}, which one replica has`)
    }
    const { body, status } = await world.read(reader.number, database, id!, `?r=${all.length}&conflicts=true`)
    if (status !== 200) return []
    const shown = new Set([body._rev, ...body._conflicts ?? []])
    const hidden = stored.filter(revision => !shown.has(revision))
    if (hidden.length > 0) findings.push(`a read of ${id} from all replicas does not show ${hidden.join(', ')}`)
    const endMs = world.nowMs + repairedMsMax
    let lacking = await lackingLeaves(all, id!, stored)
    while (lacking > 0 && world.nowMs < endMs) {
      await world.sleep(pollMs)
      lacking = await lackingLeaves(all, id!, stored)
    }
    if (lacking > 0) {
      findings.push(`${lacking} replicas lack branches of ${id} ${repairedMsMax} ms after a read from all replicas`)
    }
  }
  await world.converge(database)
  return findings
}

/** Returns how many replicas lack one of the leaves. */
async function lackingLeaves(
  replicas: readonly ShardReplica[], id: string, stored: readonly string[],
): Promise<number> {
  const complete = await Promise.all(replicas.map(async replica => {
    try {
      const opened = await replica.openDocument({ id, body: false, tree: false }, call)
      const leaves = new Set(opened?.leaves.map(({ revision }) => revision))
      return stored.every(revision => leaves.has(revision))
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
      return true
    }
  }))
  return complete.filter(isComplete => !isComplete).length
}
