/** Random calls of the verbs of replicas, as coordinators and peers of any state of mind may make them. */
import { crc32 } from 'node:zlib'
import { attemptMax, ReplicaError, revisionHash } from '@sectional/core'
import type {
  Branch, CallContext, DocumentEdit, DocumentRevision, ShardReplica, StoreRevisionsRequest,
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
const callMs = 60_000
const waitMs = 1_800_000

export class ReplicaCalls {
  readonly #dice: Dice
  readonly #ids: readonly string[]
  readonly #partitioned: boolean
  readonly #after: ReplicaCallsParts['after']
  /** The last edits, which may be sent again. */
  readonly #edits: DocumentEdit[] = []
  #count = 0

  constructor({ after, dice, partitioned }: ReplicaCallsParts) {
    this.#dice = dice
    this.#after = after
    this.#partitioned = partitioned
    this.#ids = names.map((name, index) => partitioned ? `p${index % 2}:${name}` : name)
  }

  /** Makes one call. Resolves when it has ended, in whichever way. @throws what is no `ReplicaError` */
  async one(replica: ShardReplica, others: readonly ShardReplica[], timeoutMs = callMs): Promise<void> {
    const context = this.#context(timeoutMs)
    const kind = this.#dice.weighted({
      edit: 9, again: 4, several: 2, wide: 1, store: 5, copy: 3, purge: 2, local: 2, stranger: 1, wait: 1,
      compact: 0.5, list: 1,
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
      case 'edit': return this.#send(replica, [await this.#edit(replica, dice.pick(this.#ids))], { revsLimit }, context)
      case 'again': return this.#send(replica, this.#repeated(), { revsLimit }, context)
      case 'several': {
        const ids = Array.from({ length: dice.integer(2, 5) }, () => dice.pick(this.#ids))
        const edits: DocumentEdit[] = []
        for (const id of ids) edits.push(await this.#edit(replica, id))
        return this.#send(replica, edits, { revsLimit }, context)
      }
      case 'wide': return this.#sendMany(replica, context)
      case 'full': return this.#fill(replica, context)
      case 'store': return replica.storeRevisions(await this.#strange(replica, revsLimit), context)
      case 'copy': return this.#copy(dice.pick([replica, ...others]), replica, context)
      case 'purge': return this.#purge(replica, context)
      case 'local': return replica.updateLocalDocument({
        id: dice.pick(['l1', 'l2', 'l3']), revision: ++this.#count,
        body: dice.chance(0.2) ? null : bytes({ local: this.#count }), mustExist: dice.chance(0.2),
      }, context)
      case 'stranger': return this.#send(
        replica, [await this.#edit(replica, dice.pick(this.#ids))], { revsLimit }, { ...context, history: 'another' },
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
    return replica.updateDocuments({ edits, force: this.#dice.chance(0.7), ...limits }, context)
  }

  /** Returns edits that were sent before, by the same attempts or by others. */
  #repeated(): DocumentEdit[] {
    const dice = this.#dice
    if (this.#edits.length === 0) return []
    const edit = dice.pick(this.#edits)
    return [dice.chance(0.7) ? edit : { ...edit, attempt: dice.integer(1, 3) }]
  }

  async #edit(replica: ShardReplica, id: string): Promise<DocumentEdit> {
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
    return {
      id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }),
      ...(attempt !== undefined && { attempt }), ...(revives !== undefined && { revives }),
    }
  }

  /** Sends edits of many documents, and concurrently edits of some of them. */
  async #sendMany(replica: ShardReplica, context: CallContext): Promise<unknown> {
    const dice = this.#dice
    const further = Array.from({ length: dice.integer(wideMin, wideMax) - names.length }, (_, index) => `w:${index}`)
    const ids = [...this.#ids, ...further]
    const edits: DocumentEdit[] = []
    for (const id of ids) edits.push(await this.#edit(replica, id))
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
    const local = { id: dice.pick(['l1', 'l2']), revision: 1, stamp: dice.integer(1, 9), body: bytes({ strange: 1 }) }
    return {
      revisions, revsLimit, ...(dice.chance(0.2) && { locals: [local] }), ...(dice.chance(0.3) && { external: true }),
      ...(dice.chance(0.3) && { checkpoint: { history: dice.pick(['h1', 'h2']), sequence: dice.integer(1, 50) } }),
    }
  }

  async #strangeRevision(replica: ShardReplica): Promise<DocumentRevision> {
    const dice = this.#dice
    const id = dice.pick(this.#ids)
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
    return { id, path, deleted, body: bytes({ hash: path.start }), ...(attempt !== undefined && { attempt }) }
  }

  /** Copies the leaves of a document from one replica to another, perhaps late. */
  async #copy(from: ShardReplica, to: ShardReplica, context: CallContext): Promise<unknown> {
    const [opened] = await from.openRevisions(
      [{ id: this.#dice.pick(this.#ids), revisions: 'leaves', latest: false }], context,
    )
    const revisions = (opened ?? []).flatMap(each => each.kind === 'found' ? [each.revision] : [])
    return to.storeRevisions({ revisions, revsLimit: revsLimitUsual }, context)
  }

  async #purge(replica: ShardReplica, context: CallContext): Promise<unknown> {
    const dice = this.#dice
    const id = dice.pick(this.#ids)
    const snapshot = await replica.openDocument({ id, body: false, tree: true }, context)
    if (snapshot?.tree === undefined) return undefined
    const paths = dice.sample(snapshot.tree, dice.integer(1, 2)).map(({ path }) => path)
    return replica.purgeDocuments({ purges: [{ uuid: `purge${dice.seed()}`, id, paths }] }, context)
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

function bytes(body: object): Uint8Array {
  return Buffer.from(JSON.stringify(body))
}
