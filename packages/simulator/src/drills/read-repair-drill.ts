import { createHash } from 'node:crypto'
import { ReplicaError } from '@sectional/core'
import type { AttachmentRecord, DocumentRevision, ShardReplica } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import type { Answer } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import { randomRevision } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { chunksOf } from './replica-calls.ts'
import { pickShard } from './shard-roles.ts'

/** A document is repaired again when its replicas differ again. */
const rounds = 2
const branches = 2
/** Replicas push changes after 2 s. */
const repairedMsMax = 1000
const pollMs = 20
const call = { timeoutMs: 10_000 }

/**
 * One replica has branches of a document that the others lack, with or without an attachment, so that `_revs_diff` asks
 * for them. A read that asks all replicas shows each of them once, and brings them to the others soon, whichever node
 * reads, and as often as it happens.
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
    const bare = Array.from({ length: branches }, (): DocumentRevision => randomRevision(dice, id!))
    stored.push(...bare.map(({ path }) => `1-${path.ids[0]}`))
    const all = world.nodes.filter(({ name }) => replicas.some(({ node }) => node === name))
      .flatMap(node => world.moments.replicaOf(node, shard) ?? [])
    if (all.length < replicas.length) return []
    const ahead = dice.pick(all)
    const attachments = dice.chance(0.5) ? [await attach(ahead, dice)] : undefined
    const revisions = bare.map(revision => ({ ...revision, ...(attachments && { attachments }) }))
    await ahead.storeRevisions({ revisions, revsLimit }, call)
    const diff = await world.send(reader.number, 'POST', `/${database}/_revs_diff`, { [id!]: stored })
    const asked: readonly string[] = diff.body?.[id!]?.missing ?? []
    const known = stored.slice(-branches).filter(revision => !asked.includes(revision))
    if (diff.status === 200 && known.length > 0) {
      findings.push(`_revs_diff does not ask for ${known.join(', ')} of ${id}, which one replica has`)
    }
    // Only a read of the document repairs it.
    for (const show of dice.chance(0.5) ? [showRevisions, showConflicts] : [showConflicts]) {
      const shown = await show(
        ask => world.read(reader.number, database, id!, `?r=${all.length}&${ask}`), dice.sample(stored, stored.length),
      )
      if (shown === undefined) return []
      const hidden = stored.filter(revision => shown.filter(each => each === revision).length !== 1)
      if (hidden.length === 0) continue
      findings.push(`a read of ${id} from all replicas shows ${shown.join(', ')}, and not ${hidden.join(', ')} once`)
    }
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

/** Stores content that a revision may name. @returns the attachment */
async function attach({ blobs }: ShardReplica, dice: Dice): Promise<AttachmentRecord> {
  const content = Buffer.from(`content ${dice.seed()}`)
  const { hash } = await blobs.writeBlob(chunksOf(content), call)
  return {
    name: 'a', contentType: 'text/plain', revpos: 1, digest: createHash('md5').update(content).digest('base64'),
    blob: hash, length: content.length, encoding: 'identity', storedLength: content.length,
  }
}

type Ask = (query: string) => Promise<Answer>

async function showConflicts(ask: Ask): Promise<readonly string[] | undefined> {
  const { body, status } = await ask('conflicts=true')
  return status === 200 ? [body._rev, ...body._conflicts ?? []] : undefined
}

async function showRevisions(ask: Ask, revisions: readonly string[]): Promise<readonly string[] | undefined> {
  const { body, status } = await ask(`open_revs=${encodeURIComponent(JSON.stringify(revisions))}`)
  return status === 200 ? body.map((row: { readonly ok?: { readonly _rev: string } }) => row.ok?._rev) : undefined
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
