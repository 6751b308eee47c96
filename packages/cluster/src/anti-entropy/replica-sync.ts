/**
 * One pass of anti-entropy from a source replica to a target replica. Both ends implement the same contract, so that a
 * push and a pull differ only in which end is local.
 *
 *     purges, both ways
 *     since = target.seen[source.history]
 *     source.scanChanges(since) -> target.diffRevisions -> source.openRevisions -> target.storeRevisions
 *                                  source.storeRevisions(trail)
 *
 * The checkpoint is stored at the target, in the same batch as the changes that it covers. A target that lost its disk
 * therefore has no checkpoint, and a source that lost its disk has a new history; no checkpoint has to be compared or
 * rewound.
 *
 * Every call of a pass names the history of the replica whose `replicaInfo` the pass has read (`CallContext.history`).
 * When either end begins a new history during the pass, the call is refused. A checkpoint that was computed for one
 * history thus never reaches the next one, which may lack changes that the checkpoint covers.
 */
import { newestPosition, ReplicaError, revisionBytes } from '@sectional/core'
import type {
  CallContext, ChangeRow, DocumentRevision, LocalDocument, OpenRevisionsRequest, ReplicaDiff, ShardReplica,
} from '@sectional/core'
import { bringBlobs } from '../replicas/blob-copy.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import { boundCall, exchangePurges } from './purge-exchange.ts'
import { SourceTrail } from './source-trail.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'

export type SyncOptions = Pick<AntiEntropyOptions, 'batchDocumentsMax' | 'batchBytesMax' | 'checkpointRows'>

export interface SyncPass {
  readonly source: ShardReplica
  readonly target: ShardReplica
  readonly revsLimit: number
  readonly options: SyncOptions
  /** Context of the calls. Its deadline applies to each call. */
  readonly call: CallContext
  /** Called before the first row when the target has not seen all changes of the source. */
  readonly onBehind?: () => void
  /**
   * Called when the target lags, and after each batch. Both numbers count sequences of the source: those that were
   * processed, and all that the target had not seen.
   */
  readonly onProgress?: (done: number, total: number) => void
}

export interface SyncResult {
  /** Sequence of the source up to which the target now has every change. */
  readonly sequence: number
  /** Number of changes that were processed. */
  readonly rows: number
  /** Number of revisions and local documents that the target lacked. */
  readonly stored: number
}

/** Documents in the first request for bodies, before their sizes are known. */
const firstFetch = 8
/** Largest number of documents in one request for bodies. */
const fetchMax = 128

/**
 * Runs one pass. When an end begins a new history during the pass, the pass is repeated with that history, once.
 *
 * @throws ReplicaError of either end. Everything stored until then stays, and the next pass continues from the
 *   checkpoint
 */
export async function syncReplica(pass: SyncPass): Promise<SyncResult> {
  try {
    return await new ReplicaSync(pass).run()
  } catch (error) {
    if (asReplicaError(error).code !== 'other_history') throw error
    return await new ReplicaSync(pass).run()
  }
}

class ReplicaSync {
  readonly #pass: SyncPass
  #history = ''
  /** `pass.call`, bound to the histories of the source and of the target. */
  #sourceCall: CallContext
  #targetCall: CallContext
  #fetchSize = firstFetch
  #reached = 0
  /** The range of the source's sequences that the target lacked when the pass began. */
  #since = 0
  #until = 0
  #recorded = 0
  #rows = 0
  #rowsSinceRecord = 0
  #stored = 0
  /**
   * True when the source lacks content of some revision. The checkpoint then does not advance, so that the target asks
   * again.
   */
  #incomplete = false
  #trail: SourceTrail | undefined
  #rowsSinceTrail = 0

  constructor(pass: SyncPass) {
    this.#pass = pass
    this.#sourceCall = this.#targetCall = pass.call
  }

  async run(): Promise<SyncResult> {
    const { source, target, call, options, onBehind } = this.#pass
    const [from, to] = await Promise.all([source.upkeep.replicaInfo(call), target.upkeep.replicaInfo(call)])
    this.#sourceCall = boundCall(call, from)
    this.#targetCall = boundCall(call, to)
    await exchangePurges({ replica: source, info: from }, { replica: target, info: to }, call)
    this.#history = from.history
    this.#reached = this.#recorded = to.seen[from.history] ?? 0
    if (this.#reached >= from.sequence) return this.#result()
    onBehind?.()
    this.#since = this.#reached
    this.#until = from.sequence
    this.#progressed()
    this.#trail = new SourceTrail(to.history, { theirs: to.sequence, own: this.#reached })
    const changes = { since: this.#reached, descending: false, body: false, locals: true }
    for await (const page of source.scanChanges(changes, this.#sourceCall)) {
      for (let at = 0; at < page.length; at += options.batchDocumentsMax) {
        await this.#copy(page.slice(at, at + options.batchDocumentsMax))
      }
    }
    // The scan began after `from` was read, so it included every change up to `from.sequence`.
    this.#reached = Math.max(this.#reached, from.sequence)
    if (this.#reached > this.#recorded) await this.#store([], [], true)
    await this.#tellSource()
    if (this.#incomplete) {
      const reason = 'attachment content is missing on the source; all other changes were copied'
      throw new ReplicaError('missing_blob', reason)
    }
    return this.#result()
  }

  #result(): SyncResult {
    return { sequence: this.#reached, rows: this.#rows, stored: this.#stored }
  }

  async #copy(rows: readonly ChangeRow[]): Promise<void> {
    const { checkpointRows, batchDocumentsMax, batchBytesMax } = this.#pass.options
    await this.#copyLocals(rows.filter(row => row.local).map(row => row.id))
    const diffs = await this.#diff(rows.filter(row => !row.local))
    // Each revision is requested alone, because all of one document may exceed the limit of a message.
    const wanted = diffs.flatMap(({ id, missing }) =>
      missing.map((revision): OpenRevisionsRequest => ({ id, revisions: [revision], latest: false })))
    let batch: DocumentRevision[] = []
    let bytes = 0
    for (let at = 0; at < wanted.length;) {
      const { revisions, answered } = await this.#fetch(wanted.slice(at, at + this.#fetchSize))
      at += answered
      for (const revision of revisions) {
        const size = revisionBytes(revision)
        if (batch.length > 0 && (batch.length >= batchDocumentsMax || bytes + size > batchBytesMax)) {
          await this.#store(batch, [], false)
          batch = []
          bytes = 0
        }
        batch.push(revision)
        bytes += size
      }
    }
    this.#reached = rows.at(-1)!.sequence
    this.#rows += rows.length
    this.#rowsSinceRecord += rows.length
    this.#progressed()
    if (batch.length > 0 || this.#rowsSinceRecord >= checkpointRows) await this.#store(batch, [], true)
    await this.#learn(rows, diffs, wanted.length > 0)
  }

  #progressed(): void {
    const total = this.#until - this.#since
    this.#pass.onProgress?.(Math.min(this.#reached - this.#since, total), total)
  }

  async #diff(rows: readonly ChangeRow[]): Promise<readonly ReplicaDiff[]> {
    if (rows.length === 0) return []
    const asked = rows.map(({ id, leaves }) => ({ id, revisions: leaves.map(leaf => leaf.revision) }))
    return this.#pass.target.diffRevisions(asked, this.#targetCall)
  }

  async #learn(rows: readonly ChangeRow[], diffs: readonly ReplicaDiff[], stored: boolean): Promise<void> {
    if (this.#incomplete) this.#trail?.break()
    const stands = stored ? await newestPosition(this.#pass.target, this.#targetCall) : undefined
    this.#trail?.reached(rows, diffs, stands?.sequence)
    this.#rowsSinceTrail += rows.length
    if (this.#rowsSinceTrail >= this.#pass.options.checkpointRows) await this.#tellSource()
  }

  async #tellSource(): Promise<void> {
    const trail = this.#trail?.take()
    this.#rowsSinceTrail = 0
    if (trail === undefined) return
    const { source, revsLimit } = this.#pass
    await source.storeRevisions({ revisions: [], revsLimit, trail }, this.#sourceCall)
  }

  /** Fetches the bodies of the next documents. Their size determines the number of documents in the next request. */
  async #fetch(
    requests: readonly OpenRevisionsRequest[],
  ): Promise<{ readonly revisions: readonly DocumentRevision[]; readonly answered: number }> {
    const answers = await this.#pass.source.openRevisions(requests, this.#sourceCall)
    const answered = answers.length
    if (answered === 0) {
      throw new ReplicaError('protocol', 'the source returned none of the documents that were requested')
    }
    // A revision that is missing now was replaced after its row was read. The replacement has a later row.
    const revisions = answers.flat().flatMap(each => each.kind === 'found' ? [each.revision] : [])
    const bytes = revisions.reduce((sum, revision) => sum + revisionBytes(revision), 0)
    const fitting = bytes === 0 ? fetchMax : Math.floor(answered * this.#pass.options.batchBytesMax / bytes)
    this.#fetchSize = Math.max(1, Math.min(fetchMax, this.#fetchSize * 2, fitting))
    return { revisions, answered }
  }

  async #copyLocals(ids: readonly string[]): Promise<void> {
    const { source, target } = this.#pass
    for (let at = 0; at < ids.length;) {
      const asked = ids.slice(at)
      const [from, to] = await Promise.all([
        source.openLocalDocuments(asked, this.#sourceCall), target.openLocalDocuments(asked, this.#targetCall),
      ])
      const answered = Math.min(from.length, to.length)
      if (answered === 0) {
        throw new ReplicaError('protocol', 'a replica returned none of the local documents that were requested')
      }
      at += answered
      const missing = from.slice(0, answered).flatMap((local, i) => {
        const known = to[i] ?? null
        const isKnown = local === null || (known !== null && (known.stamp > local.stamp || sameLocal(local, known)))
        return isKnown ? [] : [local]
      })
      if (missing.length > 0) await this.#store([], missing, false)
    }
  }

  async #store(
    revisions: readonly DocumentRevision[], locals: readonly LocalDocument[], record: boolean,
  ): Promise<void> {
    const { source, target, revsLimit, call } = this.#pass
    const complete = await bringBlobs(source.blobs, target.blobs, revisions, call)
    this.#incomplete ||= complete.length < revisions.length
    const checkpoint = record && !this.#incomplete ? { history: this.#history, sequence: this.#reached } : undefined
    await target.storeRevisions(
      { revisions: complete, locals, revsLimit, ...(checkpoint && { checkpoint }) }, this.#targetCall,
    )
    this.#stored += complete.length + locals.length
    if (record) {
      this.#recorded = this.#reached
      this.#rowsSinceRecord = 0
    }
  }
}

function sameLocal(a: LocalDocument, b: LocalDocument): boolean {
  if (a.stamp !== b.stamp || a.revision !== b.revision) return false
  return a.body === null || b.body === null ? a.body === b.body : Buffer.compare(a.body, b.body) === 0
}
