/** Random calls of the verbs of replicas, as coordinators and peers of any state of mind may make them. */
import { crc32 } from 'node:zlib'
import { attachmentDigests, attemptMax, ReplicaError, revisionHash } from '@sectional/core'
import type {
  AttachmentRecord, Branch, CallContext, DocumentEdit, DocumentRevision, RevisionPath, ShardReplica,
  StoreRevisionsRequest,
} from '@sectional/core'
import type { Dice } from '../world/dice.ts'

export interface ReplicaCallsParts {
  readonly dice: Dice
  readonly partitioned: boolean
  /** Runs after some milliseconds. */
  readonly after: (ms: number, work: () => void) => void
}

const names = ['d0', 'd1', 'd2', 'd3', '\u00e4/b', '\u{10ffff}']
/** Milliseconds after which some callers cancel. */
const cancelledMsMax = 30
const overChance = 0.03
const cancelledChance = 0.07
/** Longer than one record of a body. */
const largeBytes = 300_000
/** More documents than a replica reads one by one. */
const wideMin = 33
const wideMax = 60
const revsLimitUsual = 1000
/** The hashes of stored revisions differ in the last digits only. */
const hashStart = 'a0b1c2d3e4f5a6b7c8d9e0f1'
const lastDigits = ['01', '02', '03', '0f']
const attempts = [undefined, 1, 2] as const
const hotChance = 0.7
const attachedChance = 0.3
const attachmentsMax = 3
/** A local document has this stamp when the clock of the replica that gave it was far ahead. */
const aheadStamp = 2 ** 42
/** Share of the attachments of which no node has the content. */
const absentChance = 0.15
const contentsMax = 6
const callMs = 60_000
const waitMs = 1_800_000

export class ReplicaCalls {
  readonly #dice: Dice
  readonly #ids: readonly string[]
  readonly #partitioned: boolean
  readonly #after: ReplicaCallsParts['after']
  /** The last edits, which may be sent again. */
  readonly #edits: DocumentEdit[] = []
  /** The hashes of the last contents that were written to some replica. */
  readonly #contents: string[] = []
  /** The attachments of stored revisions, by document and revision. */
  readonly #attached = new Map<string, readonly AttachmentRecord[] | undefined>()
  /** The document that most calls concern; undefined: all documents are concerned alike. */
  #hot: string | undefined
  #count = 0

  constructor({ after, dice, partitioned }: ReplicaCallsParts) {
    this.#dice = dice
    this.#after = after
    this.#partitioned = partitioned
    this.#ids = names.map((name, index) => partitioned ? `p${index % 2}:${name}` : name)
  }

  /** Draws which document the next calls concern most. */
  focus(): void {
    this.#hot = this.#dice.chance(0.3) ? this.#dice.pick(this.#ids) : undefined
  }

  #id(): string {
    return this.#hot !== undefined && this.#dice.chance(hotChance) ? this.#hot : this.#dice.pick(this.#ids)
  }

  /** Makes one call. Resolves when it has ended, in whichever way. @throws what is no `ReplicaError` */
  async one(replica: ShardReplica, others: readonly ShardReplica[], timeoutMs = callMs): Promise<void> {
    const context = this.#context(timeoutMs)
    const kind = this.#dice.weighted({
      edit: 9, again: 4, several: 2, wide: 1, store: 5, copy: 3, purge: 2, local: 2, stranger: 1, wait: 1,
      compact: 0.5, list: 1, upload: 2,
      full: this.#partitioned ? 3 : 0,
    })
    try {
      await this.#call(kind!, replica, others, context)
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
    }
  }

  /** Some callers cancel their calls, some before they make them. */
  #context(timeoutMs: number): CallContext {
    const dice = this.#dice
    if (dice.chance(overChance)) return dice.chance(0.5) ? { timeoutMs: 0 } : { timeoutMs, signal: AbortSignal.abort() }
    if (!dice.chance(cancelledChance)) return { timeoutMs }
    const caller = new AbortController()
    this.#after(dice.between(0, cancelledMsMax), () => caller.abort())
    return { timeoutMs, signal: caller.signal }
  }

  async #call(
    kind: string, replica: ShardReplica, others: readonly ShardReplica[], context: CallContext,
  ): Promise<unknown> {
    const dice = this.#dice
    const revsLimit = dice.chance(0.1) ? 2 : revsLimitUsual
    switch (kind) {
      case 'edit': return this.#send(replica, [await this.#edit(replica, this.#id())], { revsLimit }, context)
      case 'again': return this.#send(replica, this.#repeated(), { revsLimit }, context)
      case 'several': {
        const ids = Array.from({ length: dice.integer(2, 5) }, () => this.#id())
        const edits: DocumentEdit[] = []
        for (const id of ids) edits.push(await this.#edit(replica, id))
        return this.#send(replica, edits, { revsLimit }, context)
      }
      case 'wide': return this.#sendMany(replica, context)
      case 'full': return this.#fill(replica, context)
      case 'upload': return this.#upload(dice.chance(0.8) ? others : [replica], context)
      case 'store': return replica.storeRevisions(await this.#strange(replica, revsLimit), context)
      case 'copy': return this.#copy(dice.pick([replica, ...others]), replica, context)
      case 'purge': return this.#purge(replica, context)
      case 'local': return replica.updateLocalDocument({
        id: dice.pick(['l1', 'l2', 'l3']), revision: ++this.#count,
        body: dice.chance(0.2) ? null : bytes({ local: this.#count }), mustExist: dice.chance(0.2),
      }, context)
      case 'stranger': return this.#send(
        replica, [await this.#edit(replica, this.#id())], { revsLimit }, { ...context, history: 'another' },
      )
      case 'wait': {
        const { history, sequence } = await replica.upkeep.replicaInfo(context)
        replica.waitForChange({ history, sequence }, { timeoutMs: waitMs }).catch(() => {})
        return undefined
      }
      case 'list': {
        for await (const _ of replica.scanDocuments({ descending: false, body: true, leaves: true }, context));
        for await (const _ of replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, context));
        return undefined
      }
      default: return replica.upkeep.compactShard(context)
    }
  }

  #send(
    replica: ShardReplica, edits: readonly DocumentEdit[],
    limits: { readonly revsLimit: number; readonly partitionBytesMax?: number }, context: CallContext,
  ): Promise<unknown> {
    this.#edits.push(...edits)
    this.#edits.splice(0, this.#edits.length - names.length)
    const force = this.#dice.pick([true, true, false, undefined])
    return replica.updateDocuments({ edits, ...(force !== undefined && { force }), ...limits }, context)
  }

  /** Returns edits that were sent before, by the same attempts or by others. */
  #repeated(): DocumentEdit[] {
    const dice = this.#dice
    if (this.#edits.length === 0) return []
    const edit = dice.pick(this.#edits)
    return [dice.chance(0.7) ? edit : { ...edit, attempt: dice.integer(1, 3) }]
  }

  async #edit(replica: ShardReplica, id: string, attached = true): Promise<DocumentEdit> {
    const dice = this.#dice
    const snapshot = await replica.openDocument({ id, body: false, tree: true }, { timeoutMs: callMs })
    const leaves = snapshot?.leaves ?? []
    const known = dice.weighted({ winner: 8, leaf: 2, inner: 1, none: 2 })
    const parent = known === 'none' ? null
      : known === 'winner' ? liveOf(leaves[0])
      : known === 'leaf' && leaves.length > 0 ? dice.pick(leaves).revision
      : innerOf(dice, snapshot?.tree)
    const deleted = parent !== null && dice.chance(0.15)
    const value = dice.integer(1, 3)
    const body = bytes(dice.chance(0.003) ? { value, large: 'x'.repeat(largeBytes) } : { value })
    const attempt = dice.chance(0.8) ? dice.integer(1, dice.pick([3, attemptMax])) : undefined
    const revives = parent !== null || dice.chance(0.5) ? undefined : leaves[0]?.deleted === true && dice.chance(0.7)
      ? leaves[0].revision : null
    const attachments = attached ? this.#attachments() : undefined
    return {
      id, parent, deleted, body,
      revisionHash: revisionHash({ deleted, parent, body, attachments: attachmentDigests(attachments) }),
      ...(attempt !== undefined && { attempt }), ...(revives !== undefined && { revives }),
      ...(attachments && { attachments }),
    }
  }

  async #upload(replicas: readonly ShardReplica[], context: CallContext): Promise<void> {
    const content = bytes({ content: this.#dice.seed() })
    for (const { blobs } of replicas) {
      const { hash } = await blobs.writeBlob(chunksOf(content), context)
      if (this.#contents.at(-1) !== hash) this.#contents.push(hash)
    }
    this.#contents.splice(0, this.#contents.length - contentsMax)
  }

  /** Sometimes returns attachments, of which this replica or every replica may lack the content. */
  #attachments(): readonly AttachmentRecord[] | undefined {
    const dice = this.#dice
    if (this.#contents.length === 0 || !dice.chance(attachedChance)) return undefined
    return Array.from({ length: dice.integer(1, attachmentsMax) }, (_, index) => ({
      name: `${index}${dice.pick(names)}`, contentType: dice.pick(['text/plain', '', 'a/\u00e4']),
      revpos: dice.integer(1, 300), digest: Buffer.from(dice.hash(), 'hex').toString('base64'),
      blob: dice.chance(absentChance) ? dice.hash() + dice.hash() : dice.pick(this.#contents),
      length: dice.pick([0, dice.integer(1, 70_000)]), encoding: dice.pick(['identity', 'gzip'] as const),
      storedLength: dice.seed(),
    }))
  }

  /** Sends edits of many documents, and concurrently edits of some of them. */
  async #sendMany(replica: ShardReplica, context: CallContext): Promise<unknown> {
    const dice = this.#dice
    const further = Array.from({ length: dice.integer(wideMin, wideMax) - names.length }, (_, index) => `w:${index}`)
    const ids = [...this.#ids, ...further]
    const edits: DocumentEdit[] = []
    // The call fails as a whole when the content of one attachment is absent.
    for (const id of ids) edits.push(await this.#edit(replica, id, false))
    const single = await this.#edit(replica, dice.pick(ids))
    const calls = [edits, [single]].map(each => this.#send(replica, each, { revsLimit: revsLimitUsual }, context))
    await Promise.allSettled(calls)
    return Promise.all(calls)
  }

  /** Edits a document of a partition whose limit is about to be reached. */
  async #fill(replica: ShardReplica, context: CallContext): Promise<unknown> {
    const id = this.#dice.pick(this.#ids)
    const { sizes } = await replica.upkeep.partitionInfo(id.split(':', 1)[0]!, context)
    const partitionBytesMax = sizes.external + this.#dice.pick([-1, 0, 0, 1])
    const edit = await this.#edit(replica, id)
    return this.#send(replica, [edit], { revsLimit: revsLimitUsual, partitionBytesMax }, context)
  }

  /** Returns revisions with histories that no client of this cluster made, as replication and lagging peers send. */
  async #strange(replica: ShardReplica, revsLimit: number): Promise<StoreRevisionsRequest> {
    const dice = this.#dice
    const revisions: DocumentRevision[] = []
    for (let count = dice.integer(0, 3); count > 0; count--) revisions.push(await this.#strangeRevision(replica))
    // Other versions than those that replicas decide differ in any of their numbers, or in their content only.
    const local = {
      id: dice.pick(['l1', 'l4']), revision: dice.integer(1, 2), stamp: dice.pick([1, 2, aheadStamp]),
      body: dice.chance(0.2) ? null : bytes({ strange: dice.integer(1, 2) }),
    }
    const external = dice.chance(0.3)
    const inner = external && dice.chance(0.5) ? await this.#inner(replica) : []
    revisions.push(...inner)
    return {
      // A restored content changes the tree, which is then stemmed. Models do not know which contents a compaction has
      // removed, so that they would not stem.
      revisions, revsLimit: inner.length > 0 ? revsLimitUsual : revsLimit,
      ...(dice.chance(0.5) && { locals: [local] }), ...(external && { external }),
      ...(dice.chance(0.3) && { checkpoint: { history: dice.pick(['h1', 'h2']), sequence: dice.integer(1, 50) } }),
    }
  }

  /** Returns an inner revision whose content the replica lacks, if the document has one. */
  async #inner(replica: ShardReplica): Promise<DocumentRevision[]> {
    const dice = this.#dice
    const id = this.#id()
    const snapshot = await replica.openDocument({ id, body: false, tree: true }, { timeoutMs: callMs })
    const branches = (snapshot?.tree ?? []).filter(({ available }) => available.slice(1).includes(false))
    if (branches.length === 0) return []
    const { available, path: { ids, start }, tombstones } = dice.pick(branches)
    const at = available.indexOf(false, 1)
    const path = { start: start - at, ids: ids.slice(at) }
    return [{ id, path, deleted: tombstones[at]!, body: bytes({ inner: path.start }) }]
  }

  async #strangeRevision(replica: ShardReplica): Promise<DocumentRevision> {
    const dice = this.#dice
    const id = this.#id()
    const snapshot = await replica.openDocument({ id, body: false, tree: true }, { timeoutMs: callMs })
    const branch = snapshot?.tree !== undefined && dice.chance(0.7) ? dice.pick(snapshot.tree).path : undefined
    const cut = branch === undefined ? 0 : dice.integer(0, Math.min(2, branch.ids.length - 1))
    const ancestors = branch === undefined ? [] : branch.ids.slice(cut)
    // A revision has one parent only.
    const ofParent = crc32(ancestors[0] ?? '').toString(16).padStart(8, '0').slice(2)
    const hash = hashStart + ofParent + dice.pick(lastDigits)
    const path = { start: (branch?.start ?? 0) - cut + 1, ids: [hash, ...ancestors] }
    const attempt = dice.pick(attempts)
    const deleted = hash.endsWith('f')
    // The same revision has the same content on every replica.
    const name = `${id}/${path.start}-${hash}`
    if (!this.#attached.has(name)) this.#attached.set(name, this.#attachments())
    const attachments = this.#attached.get(name)
    return {
      id, path, deleted, body: bytes({ hash: path.start }), ...(attempt !== undefined && { attempt }),
      ...(attachments && { attachments }),
    }
  }

  /** Copies the leaves of a document from one replica to another, perhaps late. */
  async #copy(from: ShardReplica, to: ShardReplica, context: CallContext): Promise<unknown> {
    const [opened] = await from.openRevisions(
      [{ id: this.#id(), revisions: 'leaves', latest: false }], context,
    )
    const revisions = (opened ?? []).flatMap(each => each.kind === 'found' ? [each.revision] : [])
    return to.storeRevisions({ revisions, revsLimit: revsLimitUsual }, context)
  }

  async #purge(replica: ShardReplica, context: CallContext): Promise<unknown> {
    const dice = this.#dice
    const id = dice.pick(this.#ids)
    const snapshot = await replica.openDocument({ id, body: false, tree: true }, context)
    if (snapshot?.tree === undefined) return undefined
    const branches = dice.sample(snapshot.tree, dice.integer(1, 3)).map(({ path }) => path)
    const purge = (paths: readonly RevisionPath[]): Promise<unknown> =>
      replica.purgeDocuments({ purges: [{ uuid: `purge${dice.seed()}`, id, paths }] }, context)
    // Two calls that purge parts of one document at the same time.
    return branches.length > 1 && dice.chance(0.7)
      ? Promise.all([purge(branches.slice(0, 1)), purge(branches.slice(1))]) : purge(branches)
  }
}

function liveOf(leaf: { readonly revision: string; readonly deleted: boolean } | undefined): string | null {
  return leaf === undefined || leaf.deleted ? null : leaf.revision
}

function innerOf(dice: Dice, tree: readonly Branch[] | undefined): string | null {
  if (tree === undefined || tree.length === 0) return null
  const { path: { ids, start } } = dice.pick(tree)
  const index = dice.integer(0, ids.length - 1)
  return `${start - index}-${ids[index]}`
}

export async function* chunksOf(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

function bytes(body: object): Uint8Array {
  return Buffer.from(JSON.stringify(body))
}
