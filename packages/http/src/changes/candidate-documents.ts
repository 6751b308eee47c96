/** Documents as the functions of filters see them. */
import { formatRevision, parseRevision, type ChangeRow, type Leaf, type OpenedRevision } from '@sectional/core'
import { functionRevisionsMax } from '../design-functions/function-document.ts'
import { noFlags, showRevision, shownRevision, type ShownRevision } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** A leaf of a row, about which a filter is asked. */
export interface Candidate { readonly row: ChangeRow; readonly leaf: Leaf }

/** Bytes of documents after which no further candidate is shown. */
const documentsBytesMax = 1024 * 1024
/** Revisions of one document that are read together. Their bytes are limited by nothing else. */
const requestRevisionsMax = 16

/**
 * Returns the first candidates as JSON texts, at least one and together about `documentsBytesMax` bytes. A text
 * contains `_revisions` with at most `functionRevisionsMax` ids, stubs of attachments, and on request `_conflicts`. It
 * is null for a revision that no replica has any more, because it was replaced or purged after the row was read.
 *
 * @param candidates those of one row must follow each other
 * @throws ApiError as `Coordinator.openManyRevisions`
 */
export async function candidateDocuments(
  candidates: readonly Candidate[], conflicts: boolean, request: RequestContext, services: Services,
): Promise<readonly (Buffer | null)[]> {
  const flags = { ...noFlags, revs: true, conflicts }
  const revisions = await candidateRevisions(candidates, request, services)
  const documents: (Buffer | null)[] = []
  let bytes = 0
  for (const [index, shown] of revisions.entries()) {
    if (bytes >= documentsBytesMax) break
    const { leaves } = candidates[index]!.row
    const document = shown === null ? null : showRevision({ ...shown, leaves }, flags).json
    documents.push(document)
    bytes += document?.length ?? 0
    await services.runtime.turns.pause()
  }
  return documents
}

/**
 * Returns the revisions of the first candidates, at least one. The row has the winner's body but not its ancestry, so
 * that only revisions of the first generation need not be read.
 */
async function candidateRevisions(
  candidates: readonly Candidate[], request: RequestContext, { coordinator }: Services,
): Promise<readonly (ShownRevision | null)[]> {
  const requests: { readonly id: string; readonly revisions: string[]; readonly latest: false }[] = []
  const requestOf = candidates.map(({ row: { id, leaves, body }, leaf }) => {
    if (leaf === leaves[0] && body !== undefined && parseRevision(leaf.revision).generation === 1) return null
    const last = requests.at(-1)
    if (last?.id === id && last.revisions.length < requestRevisionsMax) last.revisions.push(leaf.revision)
    else requests.push({ id, revisions: [leaf.revision], latest: false })
    return requests.length - 1
  })
  const opened = requests.length === 0
    ? [] : await coordinator.openManyRevisions(request.database, requests, { r: 1 }, request)
  const shown: (ShownRevision | null)[] = []
  for (const [index, { row, leaf }] of candidates.entries()) {
    const at = requestOf[index]!
    if (at !== null && opened[at] === undefined) break
    shown.push((at === null ? null : foundRevision(opened[at] ?? [], leaf)) ?? winnerOf(row, leaf))
  }
  return shown
}

function foundRevision(opened: readonly OpenedRevision[], leaf: Leaf): ShownRevision | null {
  for (const each of opened) {
    if (each.kind === 'missing') continue
    const { start, ids } = each.revision.path
    if (formatRevision({ generation: start, hash: ids[0]! }) !== leaf.revision) continue
    return shownRevision({ ...each.revision, path: { start, ids: ids.slice(0, functionRevisionsMax) } })
  }
  return null
}

/**
 * Returns the winner as the row contains it, or null for another leaf. Use it when no other replica can be reached that
 * has the revision: a row must not be left out because of that.
 */
function winnerOf({ id, leaves, body, attachments }: ChangeRow, leaf: Leaf): ShownRevision | null {
  if (leaf !== leaves[0] || body === undefined) return null
  const { generation, hash } = parseRevision(leaf.revision)
  return {
    id, revision: leaf.revision, deleted: leaf.deleted, body, path: { start: generation, ids: [hash] },
    ...(attachments && { attachments }),
  }
}
