/** Reads the contents of the nodes' disks with temporary engines on copies of them. */
import { formatRange, ReplicaError } from '@sectional/core'
import type { AttachmentRecord, Branch, CallContext, LocalDocument, ShardId, ShardReplica } from '@sectional/core'
import {
  ManualClock, MemoryLog, MemoryMachine, MemoryBlobStorage, MemoryStorage, SeededRandom,
} from '@sectional/runtime'
import type { MemoryDisk, Metrics } from '@sectional/runtime'
import { ShardHost, verifyShard } from '@sectional/server'
import type { DatabaseRecord } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'

export interface LeafContents {
  readonly revision: string
  readonly deleted: boolean
  readonly body: string
  readonly attachments: readonly AttachmentRecord[]
}

export interface DocumentContents {
  readonly branches: readonly Branch[]
  /** The leaves, winner first. */
  readonly leaves: readonly LeafContents[]
}

export interface ReplicaContents {
  readonly node: string
  readonly range: string
  /** Identifies the incarnation of the replica; empty when the replica is absent. */
  readonly history: string
  /** Sequence of the replica's last change. */
  readonly sequence: number
  /** Sequence of each document's last change. */
  readonly sequences: ReadonlyMap<string, number>
  readonly documents: ReadonlyMap<string, DocumentContents>
  readonly locals: ReadonlyMap<string, LocalDocument>
  /** Inconsistencies within the replica. */
  readonly problems: readonly string[]
}

/** Call context for reads from memory, which never wait. */
export const diskCall: CallContext = { timeoutMs: 3_600_000 }
const ignored = { add: () => {}, set: () => {}, observe: () => {} }
const noMetrics: Metrics = {
  counter: () => ignored, gauge: () => ignored, histogram: () => ignored, onCollect: () => {}, render: async () => '',
  samples: async () => [],
}

/** Opens the shards that are synced on a disk at this moment. */
export function openDisk(disk: MemoryDisk): Promise<ShardHost> {
  return openCopy(disk.copy())
}

/** Opens the shards of a disk that no other engine uses. */
export function openCopy(copy: MemoryDisk): Promise<ShardHost> {
  const clock = new ManualClock()
  return ShardHost.open({
    storage: new MemoryStorage(copy), blobs: new MemoryBlobStorage(copy.blobs), clock,
    random: new SeededRandom(1), metrics: noMetrics, log: new MemoryLog(), machine: new MemoryMachine(clock),
  })
}

/** Reads every replica that the shard map names, of the nodes that exist in the world. */
export async function readReplicas(
  nodes: readonly SimulatedNode[], record: DatabaseRecord,
): Promise<ReplicaContents[]> {
  const contents: ReplicaContents[] = []
  for (const node of nodes) {
    const host = await openDisk(node.disk)
    for (const { range, replicas } of record.shards) {
      if (!replicas.some(replica => replica.node === node.name)) continue
      contents.push(await readReplica(host, node.name, { incarnation: record.incarnation, range }))
    }
  }
  return contents
}

/** Reads a replica with an engine of its own (`openDisk`). */
export async function readReplica(host: ShardHost, node: string, shard: ShardId): Promise<ReplicaContents> {
  const range = formatRange(shard.range)
  const replica = host.replica(shard)
  const documents = new Map<string, DocumentContents>()
  const locals = new Map<string, LocalDocument>()
  const sequences = new Map<string, number>()
  const unread = (problem: string): ReplicaContents => ({
    node, range, history: '', sequence: 0, sequences, documents, locals, problems: [problem],
  })
  if (replica === undefined) return unread('it is not on the disk')
  try {
    await readContents(replica, documents, locals, sequences)
    const { history, sequence } = await replica.upkeep.replicaInfo(diskCall)
    return {
      node, range, history, sequence, sequences, documents, locals,
      problems: (await verifyShard(replica.records)).problems,
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    return unread(String(error))
  }
}

/** Returns whether the error reports a record that differs from what was written. */
export function isDamage(error: unknown): boolean {
  return error instanceof Error
    && (error.name === 'DamagedRecordError' || (error instanceof ReplicaError && error.code === 'storage'))
}

async function readContents(
  replica: ShardReplica, documents: Map<string, DocumentContents>, locals: Map<string, LocalDocument>,
  sequences: Map<string, number>,
): Promise<void> {
  for await (const page of replica.scanChanges({ since: 0, descending: false, body: false, locals: true }, diskCall)) {
    for (const { id, local, sequence } of page) {
      if (local === true) {
        const [document] = await replica.openLocalDocuments([id], diskCall)
        if (document) locals.set(id, document)
        continue
      }
      sequences.set(id, sequence)
      const snapshot = await replica.openDocument({ id, body: false, tree: true }, diskCall)
      const [opened] = await replica.openRevisions([{ id, revisions: 'leaves', latest: false }], diskCall)
      const leaves = (opened ?? []).flatMap(each => each.kind === 'missing' ? [] : [{
        revision: `${each.revision.path.start}-${each.revision.path.ids[0]}`, deleted: each.revision.deleted,
        body: Buffer.from(each.revision.body).toString(),
        attachments: each.revision.attachments ?? [],
      }])
      documents.set(id, { branches: snapshot?.tree ?? [], leaves })
    }
  }
}

/** Returns whether the tree contains the revision, as a leaf or as an ancestor. */
export function treeHas(branches: readonly Branch[], revision: string): boolean {
  const [generation, hash] = revision.split('-') as [string, string]
  return branches.some(({ path }) => path.ids[path.start - Number(generation)] === hash)
}

/**
 * Returns whether the revision may have been in the tree: a branch has grown so long that an ancestor of that
 * generation was removed (`_revs_limit`).
 */
export function mayBeStemmed(branches: readonly Branch[], revision: string): boolean {
  const generation = Number(revision.split('-')[0])
  return branches.some(({ path }) => path.start - path.ids.length >= generation)
}

/** Returns whether `revision` is a descendant of `ancestor` in the tree. */
export function isAncestor(branches: readonly Branch[], ancestor: string, revision: string): boolean {
  const [generation, hash] = ancestor.split('-') as [string, string]
  const [laterGeneration, laterHash] = revision.split('-') as [string, string]
  if (Number(generation) >= Number(laterGeneration)) return false
  return branches.some(({ path }) =>
    path.ids[path.start - Number(generation)] === hash && path.ids[path.start - Number(laterGeneration)] === laterHash)
}
