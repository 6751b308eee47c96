import { shardKey } from '@sectional/core'
import type { ShardReplica } from '@sectional/core'
import type { ShardHost } from '@sectional/server'
import { diskCall } from './disk-contents.ts'

/** A document revision that refers to a blob, and the shards whose documents refer to it. */
export interface Naming { readonly who: string; readonly shards: Set<string> }

/** Returns the blobs of all revisions whose bodies are stored, including replaced ones. */
export async function namedBlobs(host: ShardHost): Promise<Map<string, Naming>> {
  const named = new Map<string, Naming>()
  for (const shard of host.list()) {
    const replica = host.replica(shard)
    if (replica === undefined) continue
    const everyChange = { since: 0, descending: false, body: false, locals: false }
    for await (const page of replica.scanChanges(everyChange, diskCall)) {
      for (const { id } of page) for (const [hash, revision] of await blobsOf(replica, id)) {
        const naming = named.get(hash) ?? { who: `${id} ${revision}`, shards: new Set() }
        naming.shards.add(shardKey(shard))
        named.set(hash, naming)
      }
    }
  }
  return named
}

async function blobsOf(replica: ShardReplica, id: string): Promise<[string, string][]> {
  const snapshot = await replica.openDocument({ id, body: false, tree: true }, diskCall)
  const revisions = new Set((snapshot?.tree ?? []).flatMap(({ path, available }) =>
    path.ids.flatMap((hash, at) => available[at] === true ? [`${path.start - at}-${hash}`] : [])))
  const [opened = []] = await replica.openRevisions([{ id, revisions: [...revisions], latest: false }], diskCall)
  return opened.flatMap(each =>
    each.kind === 'missing' ? [] : (each.revision.attachments ?? []).map(({ blob }): [string, string] =>
      [blob, `${each.revision.path.start}-${each.revision.path.ids[0]}`]))
}
