import { createHash } from 'node:crypto'
import type { ShardReplica } from '@sectional/core'
import type { ShardHost } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { diskCall, openCopy } from './disk-contents.ts'
import type { Findings } from './final-state.ts'

const blobStoreName = 'attachments'

/**
 * On each disk lie the blobs that its documents name, sound, and after a sweep no others.
 * @param swept the nodes' own sweeps have had the time to remove what nothing names
 */
export async function blobsKept(nodes: readonly SimulatedNode[], swept: boolean): Promise<Findings> {
  const findings: string[] = []
  for (const node of nodes) {
    const disk = node.disk.copy()
    const before = new Map(disk.blobs.blobs(blobStoreName))
    const host = await openCopy(disk)
    const named = await namedBlobs(host)
    for (const [hash, who] of named) {
      const bytes = before.get(hash)
      if (bytes === undefined) findings.push(`${node.name} has no blob ${hash}, which ${who} names`)
      else if (createHash('sha256').update(bytes).digest('hex') !== hash) findings.push(`the blob ${hash} on ${node.name}, which ${who} names, is damaged`)
    }
    if (!swept) await host.blobs.collect()
    const left = new Set(disk.blobs.blobs(blobStoreName).keys())
    for (const hash of left) if (!named.has(hash)) findings.push(`nothing names the blob ${hash} on ${node.name}`)
    for (const hash of named.keys()) if (before.has(hash) && !left.has(hash)) findings.push(`a sweep on ${node.name} takes the blob ${hash}, which ${named.get(hash)} names`)
  }
  return findings
}

/** Blobs of all revisions whose bodies stand, replaced ones too, with one that names them. */
async function namedBlobs(host: ShardHost): Promise<Map<string, string>> {
  const named = new Map<string, string>()
  for (const shard of host.list()) {
    const replica = host.replica(shard)
    if (replica === undefined) continue
    for await (const page of replica.scanChanges({ since: 0, descending: false, body: false, locals: false }, diskCall)) {
      for (const { id } of page) for (const [hash, revision] of await blobsOf(replica, id)) named.set(hash, `${id} ${revision}`)
    }
  }
  return named
}

async function blobsOf(replica: ShardReplica, id: string): Promise<[string, string][]> {
  const snapshot = await replica.openDocument({ id, body: false, tree: true }, diskCall)
  const revisions = new Set((snapshot?.tree ?? []).flatMap(({ path, available }) => path.ids.flatMap((hash, at) => available[at] === true ? [`${path.start - at}-${hash}`] : [])))
  const [opened = []] = await replica.openRevisions([{ id, revisions: [...revisions], latest: false }], diskCall)
  return opened.flatMap(each => each.kind === 'missing' ? [] : (each.revision.attachments ?? []).map(({ blob }): [string, string] => [blob, `${each.revision.path.start}-${each.revision.path.ids[0]}`]))
}
