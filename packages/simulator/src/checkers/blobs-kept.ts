import { createHash } from 'node:crypto'
import { formatRange } from '@sectional/core'
import type { ShardId, ShardReplica } from '@sectional/core'
import type { ShardHost } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { diskCall, openCopy } from './disk-contents.ts'
import type { Findings } from './final-state.ts'

const blobStoreName = 'attachments'

/** By node, blobs that nothing names. */
export type UnnamedBlobs = ReadonlyMap<string, ReadonlySet<string>>

/** A document revision that names a blob, and the shards whose documents do. */
interface Naming { readonly who: string; readonly shards: Set<string> }

/**
 * On each disk lie the blobs that its documents name, sound, and after a sweep no others.
 * @param damagedBlobs by a fault: where no other replica of a shard that names it has one any more, nobody can repair it
 * @param unnamed of some time ago, since when the nodes' own sweeps have been able to remove them
 */
export async function blobsKept(nodes: readonly SimulatedNode[], unnamed: UnnamedBlobs, damagedBlobs: ReadonlySet<string>): Promise<Findings> {
  const findings: string[] = []
  const copies = await Promise.all(nodes.map(async node => {
    const disk = node.disk.copy()
    const blobs = new Map(disk.blobs.blobs(blobStoreName))
    const host = await openCopy(disk)
    return { node, disk, blobs, host, shards: new Set(host.list().map(shardName)), named: await namedBlobs(host) }
  }))
  const isRepairable = (hash: string, node: SimulatedNode, naming: Naming): boolean => copies.some(other =>
    other.node !== node && [...naming.shards].some(shard => other.shards.has(shard)) && isSound(hash, other.blobs.get(hash)))
  for (const { node, disk, blobs, host, named } of copies) {
    for (const [hash, naming] of named) {
      const bytes = blobs.get(hash)
      if (bytes === undefined) findings.push(`${node.name} has no blob ${hash}, which ${naming.who} names`)
      else if (!isSound(hash, bytes) && (!damagedBlobs.has(hash) || isRepairable(hash, node, naming))) findings.push(`the blob ${hash} on ${node.name}, which ${naming.who} names, is damaged`)
    }
    const overdue = [...unnamed.get(node.name) ?? []].filter(hash => blobs.has(hash) && !named.has(hash))
    findings.push(...overdue.map(hash => `nothing has named the blob ${hash} on ${node.name} for hours`))
    await host.blobs.collect()
    const left = disk.blobs.blobs(blobStoreName)
    for (const hash of left.keys()) if (!named.has(hash)) findings.push(`a sweep leaves the blob ${hash} on ${node.name}, which nothing names`)
    for (const [hash, { who }] of named) if (blobs.has(hash) && !left.has(hash)) findings.push(`a sweep on ${node.name} takes the blob ${hash}, which ${who} names`)
  }
  return findings
}

function isSound(hash: string, bytes: Uint8Array | undefined): boolean {
  return bytes !== undefined && createHash('sha256').update(bytes).digest('hex') === hash
}

export async function unnamedBlobs(nodes: readonly SimulatedNode[]): Promise<UnnamedBlobs> {
  const unnamed = new Map<string, ReadonlySet<string>>()
  for (const node of nodes) {
    const disk = node.disk.copy()
    const named = await namedBlobs(await openCopy(disk))
    unnamed.set(node.name, new Set([...disk.blobs.blobs(blobStoreName).keys()].filter(hash => !named.has(hash))))
  }
  return unnamed
}

/** Blobs of all revisions whose bodies stand, replaced ones too. */
async function namedBlobs(host: ShardHost): Promise<Map<string, Naming>> {
  const named = new Map<string, Naming>()
  for (const shard of host.list()) {
    const replica = host.replica(shard)
    if (replica === undefined) continue
    for await (const page of replica.scanChanges({ since: 0, descending: false, body: false, locals: false }, diskCall)) {
      for (const { id } of page) for (const [hash, revision] of await blobsOf(replica, id)) {
        const naming = named.get(hash) ?? { who: `${id} ${revision}`, shards: new Set() }
        naming.shards.add(shardName(shard))
        named.set(hash, naming)
      }
    }
  }
  return named
}

function shardName({ incarnation, range }: ShardId): string {
  return `${incarnation}/${formatRange(range)}`
}

async function blobsOf(replica: ShardReplica, id: string): Promise<[string, string][]> {
  const snapshot = await replica.openDocument({ id, body: false, tree: true }, diskCall)
  const revisions = new Set((snapshot?.tree ?? []).flatMap(({ path, available }) => path.ids.flatMap((hash, at) => available[at] === true ? [`${path.start - at}-${hash}`] : [])))
  const [opened = []] = await replica.openRevisions([{ id, revisions: [...revisions], latest: false }], diskCall)
  return opened.flatMap(each => each.kind === 'missing' ? [] : (each.revision.attachments ?? []).map(({ blob }): [string, string] => [blob, `${each.revision.path.start}-${each.revision.path.ids[0]}`]))
}
