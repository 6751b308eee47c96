/** The documents that writes replace, as validation functions get them. */
import { ApiError, mapBounded, openedBytesMax } from '@sectional/core'
import type { Branch, CallContext, OpenedRevision, OpenRevisionsRequest } from '@sectional/core'
import type { DocumentWrite, ReplicatedWrite, WriteOutcome } from '../contracts/coordinator.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { fetchRevisions, readDocument } from '../documents/document-read.ts'
import type { DocumentRead } from '../documents/document-read.ts'
import { errorOutcome } from '../documents/write-outcome.ts'
import { majority } from '../quorum/majority.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { askOne } from '../shard-calls/reply-collection.ts'
import { oldDocument } from './validation-arguments.ts'

/** The document that a write replaces. */
export type OldDocument =
  /** `text` is null when the write makes a new document. */
  | { readonly kind: 'document'; readonly text: Buffer | null }
  /** The documents that were read before have many bytes. This one must be requested again. The first one never is. */
  | { readonly kind: 'later' }
  /** The write cannot be validated. */
  | { readonly kind: 'refused'; readonly outcome: WriteOutcome }

/** Documents that are opened concurrently, each with calls of its own. */
const searchesTogether = 8

const none: OldDocument = Object.freeze({ kind: 'document', text: null })
const later: OldDocument = Object.freeze({ kind: 'later' })
const conflict: OldDocument = Object.freeze({ kind: 'refused', outcome: Object.freeze({ kind: 'conflict' }) })

/**
 * Opens the parents of edits, each from one replica: a revision has the same content on each replica that has it. Edits
 * without a parent read nothing.
 */
export async function parentsOf(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly DocumentWrite[], call: CallContext,
): Promise<readonly OldDocument[]> {
  const results = new Array<OldDocument>(writes.length).fill(none)
  const byPlace = new Map<ShardPlace, number[]>()
  for (const [index, { id, parent }] of writes.entries()) {
    if (parent === null) continue
    const place = scope.access.placeOf(db, id)
    const indexes = byPlace.get(place)
    if (indexes === undefined) byPlace.set(place, [index])
    else indexes.push(index)
  }
  await Promise.all([...byPlace].map(async ([place, indexes]) => {
    try {
      const requests = indexes.map(index => (
        { id: writes[index]!.id, revisions: [writes[index]!.parent!], latest: false }))
      const parents = await openFirst(scope, place, requests, call)
      for (const index of indexes.slice(parents.length)) results[index] = later
      await mapBounded([...parents.entries()], searchesTogether, async ([i, parent]) => {
        const index = indexes[i]!
        results[index] = parent.kind === 'found' ? shown(parent) : await searchAll(scope, place, writes[index]!, call)
      })
    } catch (error) {
      for (const index of indexes) results[index] = failed(error)
    }
  }))
  return results
}

/** Opens one revision of each request on one replica: as many of the first ones as fit into a message. */
async function openFirst(
  scope: CoordinatorScope, place: ShardPlace, requests: readonly OpenRevisionsRequest[], call: CallContext,
): Promise<readonly OpenedRevision[]> {
  const opened = await askOne(scope, place, ({ replica }) => replica.openRevisions(requests, call))
  return opened.map(([revision]) => revision!)
}

/**
 * Asks all replicas for a parent that one replica lacks. When a majority lacks it, and none of those that answer has
 * it, either it was replaced and its body dropped, or it never existed. When fewer answer, it may be on the other side
 * of a network partition.
 */
async function searchAll(
  scope: CoordinatorScope, place: ShardPlace, { id, parent }: DocumentWrite, call: CallContext,
): Promise<OldDocument> {
  const readers = scope.access.readers(place)
  const { opened: [found], answered } = await fetchRevisions(scope, readers, id, [parent!], readers.length, call)
  if (found?.kind === 'found') return shown(found)
  const isCertain = answered >= majority(place.activeCount)
  return isCertain ? conflict : { kind: 'refused', outcome: errorOutcome(unavailable()) }
}

/** Opens the documents that revisions with their history replace. */
export async function ancestorsOf(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly ReplicatedWrite[], call: CallContext,
): Promise<readonly OldDocument[]> {
  let bytes = 0
  return mapBounded(writes, searchesTogether, async write => {
    if (bytes > openedBytesMax) return later
    const old = await ancestorOf(scope, db, write, call)
    if (old.kind === 'document') bytes += old.text?.length ?? 0
    return old
  })
}

/**
 * Opens the document that a revision with its history replaces: the nearest ancestor whose body a replica has, or else
 * the winner.
 */
async function ancestorOf(
  scope: CoordinatorScope, db: DatabaseRecord, { id, path }: ReplicatedWrite, call: CallContext,
): Promise<OldDocument> {
  try {
    const place = scope.access.placeOf(db, id)
    const read = await readDocument(scope, db, place, id, { r: 1, body: false, tree: true }, call)
    if (read === null) return none
    const replaced = nearestAncestor(read, path.start, path.ids) ?? read.leaves[0]!.revision
    const readers = scope.access.readers(place)
    const { opened } = await fetchRevisions(scope, readers, id, [replaced], readers.length, call)
    return opened[0]?.kind === 'found' ? shown(opened[0]) : { kind: 'refused', outcome: errorOutcome(unavailable()) }
  } catch (error) {
    return failed(error)
  }
}

function nearestAncestor({ tree = [] }: DocumentRead, start: number, ids: readonly string[]): string | undefined {
  const stored = new Set(tree.flatMap(availableRevisions))
  for (const [age, hash] of ids.entries()) {
    const revision = `${start - age}-${hash}`
    if (age > 0 && stored.has(revision)) return revision
  }
  return undefined
}

function availableRevisions({ path: { start, ids }, available }: Branch): readonly string[] {
  return ids.flatMap((hash, age) => available[age] === true ? [`${start - age}-${hash}`] : [])
}

function shown(opened: OpenedRevision & { readonly kind: 'found' }): OldDocument {
  return { kind: 'document', text: oldDocument(opened.revision) }
}

function failed(error: unknown): OldDocument {
  if (!(error instanceof ApiError)) throw error
  return { kind: 'refused', outcome: errorOutcome(error) }
}

function unavailable(): ApiError {
  const reason = 'The revision that the write replaces could not be read to validate it. The document was not written; '
    + 'try again.'
  return new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '5' } })
}
