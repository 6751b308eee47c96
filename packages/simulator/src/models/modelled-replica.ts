/**
 * A local replica beside a simple model of it. Every write is also made in the model, at the moment when the replica
 * decides it, and both must give the same answers.
 */
import type {
  AttachmentRecord, BlobReplica, CallContext, ReplicaCheckpoint, ShardReplica, UpdateDocumentsReply,
} from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import type { Clock, Store } from '@sectional/runtime'
import type { Dice } from '../world/dice.ts'
import { textOf } from '../world/value-text.ts'
import type { BlobLeaseWatch } from './blob-lease-watch.ts'
import { CopyReader } from './copy-reader.ts'
import type { KnownDigests } from './known-digests.ts'
import { drawQueries, feedContradiction, portraitOf } from './portrait.ts'
import {
  documentText, leavesOf, loadAttempts, loadReplica, readDocument, readReplica, textsOf,
} from './replica-contents.ts'
import type { ReplicaContents } from './replica-contents.ts'

export interface ModelledReplicaParts {
  readonly engine: ShardReplica
  /** Whether the replica declines to decide, because it may have missed writes. */
  readonly declines: () => boolean
  /** Bytes of replaced bodies if they are at least as many as those of the others; 0 if not. */
  readonly compactedBytes: () => number
  /** The store of the replica. */
  readonly store: Store
  /** Begin of the keys of the replica in its store. */
  readonly prefix: number
  /** Returns the attempt of a revision that the engine remembers besides its records. */
  readonly attemptOf: (id: string, revision: string) => number | undefined
  /** Names the replica in findings. */
  readonly name: string
  readonly clock: Clock
  readonly partitioned: boolean
  readonly digests: KnownDigests
  /** The content that the node has promised to keep. */
  readonly leases: BlobLeaseWatch
  /** Whether the node has the content of an attachment. */
  readonly hasContent: (hash: string) => boolean
  /** Runs after everything that the current event causes. */
  readonly afterEvent: (work: () => void) => void
  /** Whether another replica of the shard counts, so that this one can miss writes. */
  readonly hasPeers: () => boolean
  /** Whether the process of the replica still runs. */
  readonly alive: () => boolean
  /** Called with the contents that the replica has when it is first used. */
  readonly onFirstContents: (contents: ReplicaContents) => void
  readonly fail: (rule: string, finding: string) => void
}

/** A write from its call to its answer. */
interface Write {
  readonly verb: string
  readonly documents: readonly string[]
  readonly locals: readonly string[]
  readonly context: CallContext
  /** The answer of the model; undefined: the call was not decided yet, or not in the model. */
  expected: Promise<unknown> | undefined
  /** The number of the decision; undefined: the call was not decided yet. */
  decision: number | undefined
  /** Whether its deadline had passed, or its caller had cancelled it, when the call was made. */
  readonly wasOver: boolean
  /** The document that the call has certainly changed. */
  edited: string | undefined
}

interface WrittenThings {
  readonly documents: readonly string[]
  readonly locals?: readonly string[] | undefined
  readonly items?: readonly { readonly attachments?: readonly AttachmentRecord[] }[]
  readonly context: CallContext
}

interface Wait { readonly seen: ReplicaCheckpoint }

/** Milliseconds after its deadline in which a call must have ended. */
const graceMs = 500

export class ModelledReplica {
  /** The replica as its node sees it. */
  readonly shown: ShardReplica
  readonly #parts: ModelledReplicaParts
  #model = new MemoryShardReplica({ history: 'model' })
  /** Whether the model has decided exactly the writes that the replica has decided. */
  #isLive = false
  #loading: Promise<void> | undefined
  #history: string | undefined
  /** Number of decisions so far. */
  #decisions = 0
  readonly #open = new Set<Write>()
  readonly #waits = new Set<Wait>()
  readonly #dirty = new Set<string>()
  readonly #reader = new CopyReader()

  constructor(parts: ModelledReplicaParts) {
    this.#parts = parts
    this.shown = this.#wrapped()
  }

  /** Whether all that the model has is certainly on the disk of the replica. */
  get isQuiet(): boolean {
    return this.#isLive && [...this.#open].every(({ decision }) => decision === undefined)
  }

  /** Begin of the keys of the replica in its store. */
  get prefix(): number {
    return this.#parts.prefix
  }

  /** Bytes of replaced bodies that the replica soon removes by itself. */
  get compactedBytes(): number {
    return this.#parts.compactedBytes()
  }

  /** The history of the replica; undefined before its first use. */
  get history(): string | undefined {
    return this.#history
  }

  /** Returns the contents of the model, without those whose outcome is unknown; undefined when they are not known. */
  async confirmedTexts(): Promise<Map<string, string> | undefined> {
    if (!this.#isLive) return undefined
    const uncertain = new Set([...this.#open].flatMap(namesOf))
    const texts = textsOf(await readReplica(this.#model))
    return new Map([...texts].filter(([name]) => !uncertain.has(name.replace(/^purge \S+ of /, 'document '))))
  }

  /** Compares all answers to reads. Resolves with false when writes were going on. */
  async audit(dice: Dice): Promise<boolean> {
    const { engine, fail, name, partitioned } = this.#parts
    await this.#ready()
    if (!this.isQuiet) return false
    const decisions = this.#decisions
    const queries = drawQueries(dice, partitioned)
    const expected = await portraitOf(this.#model, queries)
    let found
    let contradiction
    try {
      found = await portraitOf(engine, queries)
      contradiction = await feedContradiction(engine, dice) ?? await this.#reader.contradiction(engine)
    } catch {
      return false
    }
    if (decisions !== this.#decisions || !this.isQuiet) return false
    for (const [read, answer] of expected) {
      if (found.get(read) !== answer) {
        fail('replica-model', `${name} answers ${read} with ${found.get(read)}, and its model with ${answer}`)
        return true
      }
    }
    if (contradiction !== null) fail('replica-model', `${name}: ${contradiction}`)
    const blind = await this.#parts.digests.contradiction(engine, () => decisions === this.#decisions)
    if (blind !== null) fail('replica-digests', `${name}: ${blind}`)
    await this.#compareDirty()
    return true
  }

  /** Returns a call that still waits for a change although there was one, when no fault of the disk is under way. */
  async overdueWait(): Promise<string | null> {
    const { engine, name } = this.#parts
    if (this.#waits.size === 0) return null
    const { history, sequence } = await engine.upkeep.replicaInfo({ timeoutMs: 60_000 })
    const wait = [...this.#waits].find(({ seen }) => seen.history !== history || seen.sequence < sequence)
    return wait === undefined ? null
      : `a call waits at ${name} for a change after ${wait.seen.sequence}, although its sequence is ${sequence}`
  }

  #wrapped(): ShardReplica {
    const { engine } = this.#parts
    return proxied<ShardReplica>(engine, {
      ...this.#writes(),
      trimPurges: async (sequence, context) => {
        this.#forget()
        try {
          await this.#inTime('trimPurges', context, engine.trimPurges(sequence, context))
        } finally {
          this.#forget()
        }
      },
      diffRevisions: (requests, context) =>
        this.#inTime('diffRevisions', context, engine.diffRevisions(requests, context)),
      countDocuments: (request, context) =>
        this.#inTime('countDocuments', context, engine.countDocuments(request, context)),
      scanChanges: (request, context) =>
        this.#pagesInTime('scanChanges', context, engine.scanChanges(request, context)),
      scanDocuments: (request, context) =>
        this.#pagesInTime('scanDocuments', context, engine.scanDocuments(request, context)),
      waitForChange: (seen, context) => this.#wait(seen, context),
      blobs: this.#blobs(),
      upkeep: proxied(engine.upkeep, {
        digestDocuments: (count, context) =>
          this.#inTime('digestDocuments', context, engine.upkeep.digestDocuments(count, context)),
      }),
    })
  }

  #writes(): Partial<ShardReplica> {
    const { engine } = this.#parts
    return {
      updateDocuments: (request, context) => this.#write(
        'updateDocuments', { documents: request.edits.map(({ id }) => id), items: request.edits, context },
        decided => engine.updateDocuments(withDecision(request, 'revsLimit', decided), context),
        model => model.updateDocuments({ ...request, force: true }, modelCall),
      ),
      storeRevisions: (request, context) => this.#write(
        'storeRevisions', {
          documents: request.revisions.map(({ id }) => id), locals: request.locals?.map(({ id }) => id),
          items: request.revisions, context,
        },
        decided => engine.storeRevisions(withDecision(request, 'revsLimit', decided), context),
        model => model.storeRevisions(request, modelCall),
      ),
      purgeDocuments: (request, context) => this.#write(
        'purgeDocuments', { documents: request.purges.map(({ id }) => id), context },
        decided => engine.purgeDocuments(withDecision(request, 'checkpoint', decided), context),
        model => model.purgeDocuments(request, modelCall),
      ),
      updateLocalDocument: (request, context) => this.#write(
        'updateLocalDocument', { documents: [], locals: [request.id], context },
        decided => engine.updateLocalDocument(withDecision(request, 'mustExist', decided), context),
        model => model.updateLocalDocument(request, modelCall),
      ),
    }
  }

  /** Notes the content that the node promises to keep. */
  #blobs(): BlobReplica {
    const { engine: { blobs }, leases } = this.#parts
    return proxied(blobs, {
      writeBlob: async (chunks, context) => {
        const written = await blobs.writeBlob(chunks, context)
        leases.granted(written.hash)
        return written
      },
      hasBlobs: async (hashes, context) => {
        const found = await blobs.hasBlobs(hashes, context)
        for (const [index, hash] of hashes.entries()) if (found[index] === true) leases.granted(hash)
        return found
      },
    })
  }

  async #write<Reply>(
    verb: string,
    { documents, locals = [], items = [], context }: WrittenThings,
    call: (decided: () => void) => Promise<Reply>, inModel: (model: MemoryShardReplica) => Promise<unknown>,
  ): Promise<Reply> {
    await this.#ready()
    const wasOver = context.timeoutMs <= 0 || context.signal?.aborted === true
    const write: Write = {
      verb, documents, locals, context, wasOver, expected: undefined, decision: undefined, edited: undefined,
    }
    this.#open.add(write)
    let reply: Reply
    try {
      reply = await this.#inTime(verb, context, call(() => {
        if (write.decision === undefined) this.#decide(write, inModel)
      }))
    } catch (error) {
      this.#open.delete(write)
      const contradiction = this.#parts.leases.contradiction(error, items)
      if (contradiction !== null) this.#parts.fail('kept-content', `${this.#parts.name}: ${contradiction}`)
      if (write.decision !== undefined) {
        // The write may be on the disk, or become durable later.
        this.#forget()
        this.#checkMissed(write, error)
        // When the disk could not be read, the replica has decided the others without this one.
        if (error instanceof ReplicaError && error.code === 'storage') {
          for (const other of this.#open) other.expected = undefined
        }
      }
      throw error
    }
    this.#open.delete(write)
    if ((reply as { readonly kind?: string }).kind !== 'declined') this.#checkContents(verb, items)
    this.#answered(write, reply)
    return reply
  }

  /** A replica whose disk has failed a write, which its peers may have, declines to decide from then on. */
  #checkMissed({ documents, verb }: Write, error: unknown): void {
    const { afterEvent, alive, declines, fail, hasPeers, name } = this.#parts
    if (documents.length === 0 || !hasPeers() || !(error instanceof ReplicaError) || error.code !== 'storage') return
    afterEvent(() => {
      if (alive() && !declines()) fail('missed-writes', `${name} decides edits although its disk has failed ${verb}`)
    })
  }

  /** A write that names content which the node lacks must fail. */
  #checkContents(verb: string, items: NonNullable<WrittenThings['items']>): void {
    const { fail, hasContent, name } = this.#parts
    const lacking = items.flatMap(({ attachments = [] }) => attachments).find(({ blob }) => !hasContent(blob))
    if (lacking === undefined) return
    fail('kept-content', `${name} answers ${verb} with ${lacking.name}, but lacks its content ${lacking.blob}`)
  }

  #decide(write: Write, inModel: (model: MemoryShardReplica) => Promise<unknown>): void {
    if (write.wasOver) {
      this.#parts.fail('call-deadlines', `${this.#parts.name} decides ${write.verb}, which was over when it was made`)
    }
    write.decision = ++this.#decisions
    if (!this.#isLive) return
    write.expected = inModel(this.#model)
    const { documents: [id], verb } = write
    if (verb !== 'updateDocuments' || write.documents.length !== 1) return
    // A repeated edit writes nothing, and may wait for another write of the document.
    const others = [...this.#open].filter(other => other !== write && other.decision !== undefined)
    if (others.some(other => other.documents.includes(id!))) return
    write.expected.then(expected => {
      const [outcome] = (expected as UpdateDocumentsReply & { kind: 'decided' }).outcomes
      if (outcome?.kind === 'updated') write.edited = id
    }, () => {})
  }

  #answered(write: Write, reply: unknown): void {
    const { context, documents, expected, verb } = write
    const { fail, name } = this.#parts
    if (context.history !== undefined && this.#history !== undefined && context.history !== this.#history) {
      fail('other-history', `${name} answers ${verb} for the history ${context.history}, but has ${this.#history}`)
    }
    if (expected === undefined) return
    const told = textOf(normal(reply))
    void expected.then(answer => {
      const wanted = textOf(normal(answer))
      if (wanted !== told) fail('replica-model', `${name} answers ${verb} of ${documents} with ${told}, not ${wanted}`)
    }, (error: unknown) => {
      fail('replica-model', `${name} answers ${verb} with ${told}, although its model fails: ${String(error)}`)
    })
    for (const id of documents) this.#dirty.add(id)
    this.#checkReliance(write)
    if (this.isQuiet) void this.#compareDirty()
  }

  /** An answer that follows from an edit must not be given before the edit is durable. */
  #checkReliance(write: Write): void {
    // A replica leaves out a revision that was purged without a look at the document.
    if (write.verb !== 'updateDocuments') return
    const { afterEvent, alive, fail, name } = this.#parts
    const relied = [...this.#open].filter(({ decision, edited }) =>
      edited !== undefined && write.documents.includes(edited) && decision! < write.decision!)
    if (relied.length === 0) return
    afterEvent(() => {
      const still = relied.find(other => this.#open.has(other))
      if (still === undefined || !alive()) return
      fail('durable-answers', `${name} answers ${write.verb} of ${still.edited}, whose edit is not durable yet`)
    })
  }

  /** Compares what the last writes have changed. */
  async #compareDirty(): Promise<void> {
    const { engine, fail, name } = this.#parts
    const decisions = this.#decisions
    const ids = [...this.#dirty]
    this.#dirty.clear()
    for (const id of ids) {
      const wanted = await readDocument(this.#model, id)
      let found
      try {
        found = await readDocument(engine, id)
      } catch {
        return
      }
      if (decisions !== this.#decisions || !this.#isLive) {
        for (const each of ids) this.#dirty.add(each)
        return
      }
      const [is, should] = [found, wanted].map(each => each === null ? 'nothing' : documentText(each))
      if (is === should) continue
      fail('replica-model', `${name} has ${is} as ${id}, not ${should} (${[found, wanted].map(each =>
        each === null ? 'none' : leavesOf(each)).join(' / ')})`)
      return
    }
  }

  async #wait(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    const wait = { seen }
    if (seen.history !== '') this.#waits.add(wait)
    try {
      return await this.#inTime('waitForChange', context, this.#parts.engine.waitForChange(seen, context))
    } finally {
      this.#waits.delete(wait)
    }
  }

  /** A call must end at its deadline. */
  async #inTime<Reply>(verb: string, context: CallContext, call: Promise<Reply>): Promise<Reply> {
    const { afterEvent, alive, clock, fail, name } = this.#parts
    const { signal } = context
    let open = true
    const aborted = (): void => afterEvent(() => {
      if (open && alive()) fail('call-deadlines', `${verb} of ${name} has not ended although it was cancelled`)
    })
    signal?.addEventListener('abort', aborted, { once: true })
    const timer = clock.setTimer(Math.max(0, context.timeoutMs) + graceMs, () => {
      if (alive()) fail('call-deadlines', `${verb} of ${name} has not ended at its deadline of ${context.timeoutMs} ms`)
    })
    try {
      return await call
    } finally {
      open = false
      timer.cancel()
      signal?.removeEventListener('abort', aborted)
    }
  }

  /** The wait for each page must end at the deadline of the scan. */
  async *#pagesInTime<Row>(
    verb: string, context: CallContext, pages: AsyncIterable<readonly Row[]>,
  ): AsyncGenerator<readonly Row[]> {
    const iterator = pages[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.#inTime(verb, context, iterator.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await iterator.return?.()
    }
  }

  #forget(): void {
    this.#decisions++
    this.#isLive = false
    this.#dirty.clear()
  }

  /** Loads the model when it does not follow the replica and no write is going on. */
  async #ready(): Promise<void> {
    if (this.#isLive || this.#open.size > 0) return
    this.#loading ??= this.#load().finally(() => { this.#loading = undefined })
    await this.#loading
  }

  async #load(): Promise<void> {
    const { attemptOf, clock, engine, onFirstContents, store } = this.#parts
    const decisions = this.#decisions
    let contents
    try {
      // After this empty write, every write that was accepted earlier is on the disk or has failed.
      await store.write(() => {})
      contents = await readReplica(engine)
    } catch {
      return
    }
    const model = new MemoryShardReplica({ history: contents.info.history, now: () => clock.now() })
    // The contents of attachments are not modelled.
    model.blobs.require = () => {}
    await loadReplica(model, contents)
    await loadAttempts(model, contents, attemptOf)
    if (decisions !== this.#decisions) return
    this.#model = model
    this.#isLive = true
    this.#dirty.clear()
    if (this.#history === undefined) {
      this.#history = contents.info.history
      onFirstContents(contents)
    }
  }
}

const modelCall: CallContext = { timeoutMs: 1000 }

/** Returns the names of what a write concerns, as in `textsOf`. */
function namesOf({ documents, locals }: Write): string[] {
  return [...documents.map(id => `document ${id}`), ...locals.map(id => `local document ${id}`)]
}

/** Returns the request with a property that calls `decided` when it is read: the replica reads it when it decides. */
function withDecision<Request extends object>(request: Request, name: keyof Request, decided: () => void): Request {
  return Object.defineProperty({ ...request }, name, {
    enumerable: true,
    get: () => {
      decided()
      return request[name]
    },
  })
}

/** Returns the answer without an order that replicas choose for themselves. */
function normal(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(each => Array.isArray(each) ? each.toSorted() : each)
  const { rivals, ...rest } = reply as { readonly rivals?: readonly number[] }
  return rivals === undefined ? rest : { ...rest, rivals: rivals.toSorted((a, b) => a - b) }
}

function proxied<Whole extends object>(whole: Whole, changes: Partial<Whole>): Whole {
  return new Proxy(whole, {
    get: (target, name) => {
      if (Object.hasOwn(changes, name)) return changes[name as keyof Whole]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
