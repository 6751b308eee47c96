/** Reads everything that a replica answers about its documents, and loads it into a model. */
import type {
  Branch, CallContext, DocumentRevision, LocalDocument, PurgeRow, ReplicaInfo, ShardReplica,
} from '@sectional/core'
import { textOf } from '../world/value-text.ts'

export interface DocumentContents {
  readonly branches: readonly Branch[]
  readonly leaves: readonly DocumentRevision[]
}

export interface ReplicaContents {
  readonly info: ReplicaInfo
  /** In the order of their last changes. */
  readonly documents: ReadonlyMap<string, DocumentContents>
  readonly locals: ReadonlyMap<string, LocalDocument>
  readonly purges: readonly PurgeRow[]
}

/** Reads from memory never wait; a simulated disk may be slow. */
export const readCall: CallContext = { timeoutMs: 3_600_000 }
const noLimit = Number.MAX_SAFE_INTEGER
const emptyBody = Buffer.from('{}')

/** @throws ReplicaError when the disk fails or a record is damaged */
export async function readReplica(replica: ShardReplica): Promise<ReplicaContents> {
  const documents = new Map<string, DocumentContents>()
  const locals = new Map<string, LocalDocument>()
  const purges: PurgeRow[] = []
  const scan = { since: 0, descending: false, body: false, locals: true }
  for await (const rows of replica.scanChanges(scan, readCall)) {
    for (const { id, local } of rows) {
      if (local === true) {
        const [document] = await replica.openLocalDocuments([id], readCall)
        if (document) locals.set(id, document)
      } else {
        const found = await readDocument(replica, id)
        if (found !== null) documents.set(id, found)
      }
    }
  }
  for await (const rows of replica.scanPurges(0, readCall)) purges.push(...rows)
  return { info: await replica.upkeep.replicaInfo(readCall), documents, locals, purges }
}

/** Returns null when the replica has no such document. */
export async function readDocument(replica: ShardReplica, id: string): Promise<DocumentContents | null> {
  const snapshot = await replica.openDocument({ id, body: false, tree: true }, readCall)
  if (snapshot === null) return null
  const [opened] = await replica.openRevisions([{ id, revisions: 'leaves', latest: false }], readCall)
  return {
    branches: snapshot.tree ?? [],
    leaves: (opened ?? []).flatMap(each => each.kind === 'found' ? [each.revision] : []),
  }
}

/** Stores the contents in an empty replica. */
export async function loadReplica(
  target: ShardReplica, { documents, info, locals, purges }: ReplicaContents,
): Promise<void> {
  await target.purgeDocuments({ purges: purges.map(({ id, paths, uuid }) => ({ id, paths, uuid })) }, readCall)
  for (const [history, sequence] of Object.entries(info.purgesSeen)) {
    await target.purgeDocuments({ purges: [], checkpoint: { history, sequence } }, readCall)
  }
  for (const [id, { branches, leaves }] of documents) {
    const revisions = [...branches.flatMap(branch => tombstonesInside(id, branch)), ...leaves]
    // A purge may name them: what the replica has nevertheless, it received again afterwards.
    await target.storeRevisions({ revisions, revsLimit: noLimit, external: true }, readCall)
  }
  await target.storeRevisions({ revisions: [], locals: [...locals.values()], revsLimit: noLimit }, readCall)
  for (const [history, sequence] of Object.entries(info.seen)) {
    await target.storeRevisions({ revisions: [], revsLimit: noLimit, checkpoint: { history, sequence } }, readCall)
  }
}

/** Tells a replica that has the contents which attempts made its revisions, where `attemptOf` knows it. */
export async function loadAttempts(
  target: ShardReplica, { documents, purges }: ReplicaContents,
  attemptOf: (id: string, revision: string) => number | undefined,
): Promise<void> {
  const revisions = [...documents].flatMap(([id, { branches }]) => branches.flatMap(({ path: { start, ids } }) =>
    ids.flatMap((hash, index): DocumentRevision[] => {
      const attempt = attemptOf(id, `${start - index}-${hash}`)
      return attempt === undefined ? [] : [{
        id, path: { start: start - index, ids: ids.slice(index) }, deleted: false, body: emptyBody, attempt,
        purges: purges.filter(purge => purge.id === id).map(({ uuid }) => uuid),
      }]
    })))
  await target.storeRevisions({ revisions, revsLimit: noLimit }, readCall)
}

/** Returns the inner revisions of a branch that were deletions, oldest first. */
function tombstonesInside(id: string, { path, tombstones }: Branch): DocumentRevision[] {
  return path.ids.flatMap((_, index): DocumentRevision[] => index === 0 || tombstones[index] !== true ? [] : [
    { id, path: { start: path.start - index, ids: path.ids.slice(index) }, deleted: true, body: emptyBody },
  ]).reverse()
}

/**
 * Returns a text for each document, local document and purge, which are equal for equal contents. Whether a replaced
 * revision was a deletion is left out, because revisions travel without it.
 */
export function textsOf({ documents, locals, purges }: Omit<ReplicaContents, 'info'>): Map<string, string> {
  return new Map([
    ...[...documents].map(([id, document]): [string, string] => [`document ${id}`, leavesText(document)]),
    ...[...locals].map(([id, local]): [string, string] => [`local document ${id}`, textOf(local)]),
    ...purges.map(({ id, paths, uuid }): [string, string] => [`purge ${uuid} of ${id}`, textOf(paths)]),
  ])
}

/** Whether bodies of replaced revisions are still there is left out: replicas may differ in it. */
export function documentText({ branches, leaves }: DocumentContents): string {
  return textOf({
    branches: branches.map(({ deleted, path, tombstones }) => ({ deleted, path, tombstones })),
    leaves: leavesText({ branches, leaves }),
  })
}

function leavesText({ leaves }: DocumentContents): string {
  return textOf(leaves.map(({ purges, ...leaf }) => ({ ...leaf, ...(purges && { purges: purges.toSorted() }) })))
}

/** Returns a short description of a document for messages. */
export function leavesOf({ leaves }: DocumentContents): string {
  return leaves.map(({ deleted, path }) => `${path.start}-${path.ids[0]}${deleted ? ' (deleted)' : ''}`).join(', ')
}
