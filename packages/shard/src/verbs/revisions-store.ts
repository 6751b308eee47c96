import type { DocumentRevision, StoreRevisionsReply, StoreRevisionsRequest } from '@sectional/core'
import { documentLeavesMax, isPurged, noRivals, RevisionTree } from '@sectional/core'
import { supersedesLocal } from '../records/local-record.ts'
import type { WriteDraft } from '../writing/write-draft.ts'
import { inIdOrder } from './id-order.ts'

/**
 * Merges revisions that other replicas or clusters decided. Known revisions change nothing, except that a client can
 * restore the content of an ancestor. Only a client's revision is ever refused (`StoreRevisionsReply.refused`).
 */
export function decideRevisions(
  draft: WriteDraft, { revisions, locals = [], revsLimit, checkpoint, trail, external }: StoreRevisionsRequest,
): StoreRevisionsReply {
  const rivals: number[] = []
  const refused: number[] = []
  const merge = new RevisionsMerge(draft, revsLimit, external === true)
  for (const index of inIdOrder(revisions)) {
    const { id, path, purges } = revisions[index]!
    if (draft.anyPurges && external !== true && isPurged(draft.purges(id), `${path.start}-${path.ids[0]}`, purges)) {
      continue
    }
    const added = merge.add(revisions[index]!)
    if (added === 'rival') rivals.push(index)
    else if (added === 'refused') refused.push(index)
  }
  merge.finish()
  draft.stemDocuments(revsLimit)
  for (const local of locals) {
    const existing = draft.localDocument(local.id)
    if (existing === undefined || supersedesLocal(local, existing)) draft.putLocal(local)
  }
  if (checkpoint !== undefined) draft.putCheckpoint(checkpoint.history, checkpoint.sequence)
  if (trail !== undefined) draft.extendTrail(trail)
  if (rivals.length === 0 && refused.length === 0) return noRivals
  return { rivals, ...(refused.length > 0 && { refused }) }
}

/** Merges the revisions of one call, one document after the other. The trees are stemmed after all of them. */
class RevisionsMerge {
  readonly #draft: WriteDraft
  readonly #revsLimit: number
  /** Whether a client wrote the revisions. */
  readonly #external: boolean
  /** The document whose revisions are being merged; undefined before the first one. */
  #id: string | undefined
  /** Its tree before the call. */
  #before = RevisionTree.empty
  /** Its tree with all revisions that were added. */
  #tree = RevisionTree.empty
  /** Whether the draft has a new revision of it. */
  #drafted = false
  /** Whether the last change of its tree only added ancestors of a known revision, which the draft lacks. */
  #onlyAncestry = false

  constructor(draft: WriteDraft, revsLimit: number, external: boolean) {
    this.#draft = draft
    this.#revsLimit = revsLimit
    this.#external = external
  }

  /** Merges one revision, unless a client would add a new branch beside `documentLeavesMax` leaves. */
  add(revision: DocumentRevision): 'stored' | 'rival' | 'refused' {
    const { id, path, deleted, body, attachments, attempt } = revision
    if (id !== this.#id) this.#begin(id)
    const name = `${path.start}-${path.ids[0]}`
    const bodyKey = this.#draft.nextSequence
    const { tree: merged, result } = this.#tree.merge(path, { deleted, bodyKey })
    if (this.#external && result === 'new-branch' && merged.leafNodes().length > documentLeavesMax) return 'refused'
    const isOfAnother = attempt !== undefined && result === 'internal' && this.#isOfAnother(attempt, id, name)
    const added = isOfAnother || (attempt !== undefined && result !== 'new-leaf' && merged.hasSibling(path))
      ? 'rival' : 'stored'
    const completed = this.#external && result === 'internal' ? merged.withBody(path, bodyKey) : null
    const tree = completed ?? merged
    if (tree === this.#tree) return added
    this.#tree = tree
    this.#onlyAncestry = result === 'internal' && completed === null
    if (!this.#onlyAncestry) {
      this.#draft.putRevision(id, tree, name, { body, ...(attachments && { attachments }) }, attempt)
      this.#drafted = true
    }
    return added
  }

  /** Returns whether another attempt has made the known revision. When none is known, this one is noted. */
  #isOfAnother(attempt: number, id: string, revision: string): boolean {
    const known = this.#draft.attemptOf(id, revision)
    if (known === undefined) this.#draft.noteAttempt(id, revision, attempt)
    return known !== undefined && known !== attempt
  }

  /** Completes the last document. */
  finish(): void {
    // Stemming may remove added ancestors again at once; then nothing has changed.
    const unchanged = !this.#onlyAncestry || (!this.#drafted
      && Buffer.compare(this.#tree.stem(this.#revsLimit).encode(), this.#before.encode()) === 0)
    if (!unchanged) this.#draft.putAncestry(this.#id!, this.#tree)
  }

  #begin(id: string): void {
    this.finish()
    this.#id = id
    this.#before = this.#tree = this.#draft.document(id)?.tree ?? RevisionTree.empty
    this.#drafted = this.#onlyAncestry = false
  }
}
