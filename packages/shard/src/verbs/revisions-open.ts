import type { OpenedRevision, OpenRevisionsRequest, Purge } from '@sectional/core'
import { fittingFirst, openedBytes, openedBytesMax, openedRevisionBytes, purgesOf } from '@sectional/core'
import type { RevisionContent } from '../records/body-record.ts'
import type { DocumentRecord } from '../records/document-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'

/**
 * Opens revisions. For 'leaves' of an unknown document the result has no entry. A revision without a body is missing.
 *
 * @param anyPurges whether the shard has recorded any purge
 */
export async function openRevisions(
  records: ShardRecords, requests: readonly OpenRevisionsRequest[], anyPurges: boolean,
): Promise<readonly (readonly OpenedRevision[])[]> {
  const purges = anyPurges ? requests.map(({ id }) => records.purges(id)) : null
  const documents = await records.documents(requests.map(request => request.id))
  const located = fitting(documents, requests)
  const sequences: number[] = []
  for (const entries of located) {
    for (const entry of entries) if (entry.kind === 'found') sequences.push(entry.bodySequence)
  }
  const bodies = await records.bodies(sequences)
  // The reply states that a revision was stored again after a purge (`purges`). This is only true if the purges did not
  // change while the revision was read; otherwise read again.
  const isTorn = purges !== null && requests.some(({ id }, index) => !sameUuids(records.purges(id), purges[index]!))
  if (isTorn || haveGone(records, located.flat(), bodies)) return openRevisions(records, requests, anyPurges)
  let next = 0
  const opened = located.map((entries, index) => entries.map((entry): OpenedRevision => {
    if (entry.kind === 'missing') return entry
    const { id, path, deleted, attempt } = entry
    const revision = { id, path, deleted, ...bodies[next++]!, ...(attempt !== undefined && { attempt }) }
    const applied = purges === null ? [] : purgesOf(purges[index]!, `${path.start}-${path.ids[0]}`)
    return { kind: 'found', revision: applied.length === 0 ? revision : { ...revision, purges: applied } }
  }))
  // The sizes of the attachments' names and types are only known after the bodies were read.
  return fittingFirst(opened, openedBytes)
}

function sameUuids(a: readonly Purge[], b: readonly Purge[]): boolean {
  return a.length === b.length && a.every(({ uuid }, index) => uuid === b[index]!.uuid)
}

/** Whether some bodies were removed meanwhile. @throws DamagedRecordError when a document refers to a missing body */
function haveGone(
  records: ShardRecords, located: readonly Located[], bodies: readonly (RevisionContent | undefined)[],
): boolean {
  if (!bodies.includes(undefined)) return false
  let next = 0
  for (const entry of located) {
    if (entry.kind === 'found' && bodies[next++] === undefined) records.assertGone(entry.id, entry.bodySequence)
  }
  return true
}

/** Locates the revisions of the first requests, up to the request that exceeds `openedBytesMax` in total. */
function fitting(
  documents: readonly (DocumentRecord | undefined)[], requests: readonly OpenRevisionsRequest[],
): Located[][] {
  const located: Located[][] = []
  const leavesByBody = new LeavesByBody()
  let bytes = 0
  for (const [index, request] of requests.entries()) {
    if (bytes > openedBytesMax) break
    const entries = locate(documents[index], request, leavesByBody)
    for (const entry of entries) if (entry.kind === 'found') bytes += entry.bodyBytes + openedRevisionBytes
    located.push(entries)
  }
  return located
}

type Located =
  | { readonly kind: 'missing'; readonly revision: string }
  | {
    readonly kind: 'found'
    readonly id: string
    readonly path: { readonly start: number; readonly ids: readonly string[] }
    readonly deleted: boolean
    readonly bodySequence: number
    readonly bodyBytes: number
    readonly attempt?: number | undefined
  }

/** Finds leaves by their bodies. Many requests of one call may name one document with thousands of leaves. */
class LeavesByBody {
  #document: DocumentRecord | undefined
  #leaves = new Map<number, StoredLeaf>()

  find(document: DocumentRecord, bodySequence: number): StoredLeaf | undefined {
    const { leaves } = document
    if (leaves.length === 1) return leaves[0].bodySequence === bodySequence ? leaves[0] : undefined
    if (this.#document !== document) {
      this.#document = document
      this.#leaves = new Map(leaves.map(leaf => [leaf.bodySequence, leaf]))
    }
    return this.#leaves.get(bodySequence)
  }
}

/** Locates revisions. The size of a replaced revision's body is not recorded; the winner's size is used instead. */
function locate(
  document: DocumentRecord | undefined, { id, revisions, latest }: OpenRevisionsRequest, leavesByBody: LeavesByBody,
): Located[] {
  if (document === undefined) {
    return revisions === 'leaves' ? [] : revisions.map(revision => ({ kind: 'missing', revision }))
  }
  const { tree, leaves } = document
  if (revisions === 'leaves') {
    return leaves.map(({ revision, deleted, bodySequence, bodyBytes, attempt }) => (
      { kind: 'found', id, path: tree.path(revision)!, deleted, bodySequence, bodyBytes, attempt }))
  }
  const named = latest ? newest(document, revisions) : revisions
  return named.map((revision): Located => {
    const node = tree.node(revision)
    const path = tree.path(revision)
    if (node === undefined || node.bodyKey === null || path === null) return { kind: 'missing', revision }
    const leaf = leavesByBody.find(document, node.bodyKey)
    const { bodyBytes } = leaf ?? leaves[0]
    return {
      kind: 'found', id, path, deleted: node.deleted, bodySequence: node.bodyKey, bodyBytes, attempt: leaf?.attempt,
    }
  })
}

/** Replaces revisions by the leaves that descend from them, each leaf once. Unknown revisions are kept. */
function newest({ tree }: DocumentRecord, revisions: readonly string[]): string[] {
  return [...new Set(revisions.flatMap(revision => {
    const leaves = tree.latest(revision)
    return leaves.length === 0 ? [revision] : leaves
  }))]
}
