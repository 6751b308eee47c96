import { expect } from 'chai'
import fc from 'fast-check'
import type { DocumentEdit, DocumentRevision, ShardReplica, StoreRevisionsRequest } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryStorage } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../../src/index.ts'
import { DocumentRecord } from '../../src/records/document-record.ts'
import type { ShardEngine } from '../../src/index.ts'
import { collect, context, edit, revision, shardA, shardRuntime } from '../shard-world.ts'

type Step =
  | { readonly kind: 'update'; readonly edits: readonly EditPlan[] }
  | { readonly kind: 'store'; readonly revisions: readonly RevisionPlan[]; readonly checkpoint: number }
  | { readonly kind: 'local'; readonly id: string; readonly value: number; readonly deleted: boolean }
  | { readonly kind: 'wait'; readonly turns: number }
  | { readonly kind: 'fail' }
  | { readonly kind: 'crash'; readonly keep: boolean }

interface EditPlan {
  readonly id: string
  readonly value: number
  readonly deleted: boolean
  readonly parent: 'none' | 'winner' | 'known' | 'unknown'
}
interface RevisionPlan {
  readonly id: string
  readonly path: readonly string[]
  /** How many ancestors of the revision are left out of its path. */
  readonly lacking: number
  readonly deleted: boolean
  readonly attempt: number | undefined
}

const allIds = ['a', 'b', 'c', 'ä/b', '\u0000', '\u{10ffff}', '_design/x']
const ids = fc.constantFrom(...allIds)
const value = fc.integer({ min: 0, max: 3 })
const seldom = fc.integer({ min: 0, max: 3 }).map(roll => roll === 0)
const editPlan = fc.record({
  id: ids, value, deleted: seldom, parent: fc.constantFrom('none', 'winner', 'winner', 'known', 'unknown'),
}) as fc.Arbitrary<EditPlan>
const revisionPlan = fc.record({
  id: ids, path: fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 4 }),
  lacking: fc.constantFrom(0, 0, 1, 3), deleted: seldom, attempt: fc.constantFrom(undefined, 1, 2),
})
const update = fc.record({
  kind: fc.constant('update' as const), edits: fc.array(editPlan, { minLength: 1, maxLength: 4 }),
})
const store = fc.record({
  kind: fc.constant('store' as const), revisions: fc.array(revisionPlan, { maxLength: 4 }),
  checkpoint: fc.integer({ min: 0, max: 50 }),
})
const local = fc.record({ kind: fc.constant('local' as const), id: ids, value, deleted: seldom })
const calls = [{ weight: 6, arbitrary: update }, { weight: 4, arbitrary: store }, { weight: 2, arbitrary: local }]
const disturbances = [
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), turns: fc.integer({ min: 0, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), keep: fc.boolean() }) },
]

/** All revisions that were returned by any call, so that edits can name them. */
class KnownRevisions {
  readonly #known = new Map<string, string[]>()

  add(id: string, name: string): void {
    this.#known.set(id, [...this.#known.get(id) ?? [], name])
  }

  async edit(replica: ShardReplica, { id, value, deleted, parent }: EditPlan): Promise<DocumentEdit> {
    const known = this.#known.get(id) ?? []
    const name = parent === 'none' ? null
      : parent === 'unknown' ? '1-00000000000000000000000000000000'
      : parent === 'known' ? known[value % Math.max(1, known.length)] ?? null
      : (await replica.openDocument({ id, body: false, tree: false }, context))?.leaves[0]?.revision ?? null
    return edit(id, name, { value }, deleted)
  }
}

function storeRequest({ revisions, checkpoint }: Extract<Step, { kind: 'store' }>): StoreRevisionsRequest {
  return {
    revisions: revisions.map(({ id, path, lacking, deleted, attempt }) => {
      const known = { start: path.length, ids: path.slice(0, Math.max(1, path.length - lacking)) }
      return { ...revision(id, path, { path }, deleted), path: known, ...(attempt !== undefined && { attempt }) }
    }),
    revsLimit: 1000,
    ...(checkpoint > 0 ? { checkpoint: { history: `h${checkpoint % 2}`, sequence: checkpoint } } : {}),
  }
}

describe('a shard under random work', () => {
  it('gives the same answers as the replica in memory', async () => {
    const work = fc.array(fc.oneof(...calls), { maxLength: 25, size: 'max' })
    await fc.assert(fc.asyncProperty(work, fc.integer({ min: 1, max: 6 }), async (steps, revsLimit) => {
      const clock = new ManualClock()
      const host = await ShardHost.open(shardRuntime(new MemoryStorage(), clock))
      const engine = await host.create(shardA)
      const oracle = new MemoryShardReplica({ history: 'oracle', now: () => clock.now() })
      const known = new KnownRevisions()
      for (const step of steps) await applyToBoth(engine, oracle, known, step, revsLimit)
      expect(await portrait(engine)).to.deep.equal(await portrait(oracle))
      expect((await verifyShard(engine.records)).problems).to.deep.equal([])
      await host.close()
    }), { numRuns: 150 })
  })

  it('keeps every acknowledged write and consistent records through crashes and disk errors', async () => {
    let keptSeen = 0
    const work = fc.array(fc.oneof(...calls, ...disturbances), { maxLength: 40, size: 'max' })
    await fc.assert(fc.asyncProperty(work, async steps => {
      const world = await CrashWorld.start()
      for (const step of steps) await world.apply(step as Step)
      await world.crash(false)
      await world.check()
      await world.stop()
      keptSeen += world.keptSeen
    }), { numRuns: 600 })
    expect(keptSeen).to.be.above(100)
  }).timeout(60_000)
})

async function applyToBoth(
  engine: ShardEngine, oracle: MemoryShardReplica, known: KnownRevisions,
  step: Exclude<Step, { kind: 'wait' | 'fail' | 'crash' }>, revsLimit: number,
): Promise<void> {
  if (step.kind === 'update') {
    const edits = await Promise.all(step.edits.map(plan => known.edit(oracle, plan)))
    const reply = await engine.updateDocuments({ edits, revsLimit }, context)
    expect(reply).to.deep.equal(await oracle.updateDocuments({ edits, revsLimit }, context))
    if (reply.kind === 'declined') throw new Error('declined')
    for (const [index, outcome] of reply.outcomes.entries()) {
      if (outcome.kind === 'updated') known.add(edits[index]!.id, `${outcome.path.start}-${outcome.path.ids[0]}`)
    }
  } else if (step.kind === 'store') {
    const request = { ...storeRequest(step), revsLimit }
    const { rivals } = await engine.storeRevisions(request, context)
    const expected = await oracle.storeRevisions(request, context)
    expect(rivals.toSorted((a, b) => a - b)).to.deep.equal(expected.rivals)
    for (const { id, path } of request.revisions) known.add(id, `${path.start}-${path.ids[0]}`)
  } else {
    const request = {
      id: step.id, revision: step.value, body: step.deleted ? null : Buffer.from('{}'), mustExist: step.deleted,
    }
    expect(await engine.updateLocalDocument(request, context)).to.deep.equal(
      await oracle.updateLocalDocument(request, context),
    )
  }
}

/** The answers to all read calls, without the numbers that replicas choose for themselves. */
async function portrait(replica: ShardReplica): Promise<unknown> {
  const rows = await collect(replica.scanDocuments({ descending: false, body: true, leaves: true }, context))
  const changes = await collect(replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, context))
  const documents = changes.filter(change => change.local === undefined)
  const byId = (a: { id: string }, b: { id: string }): number => a.id < b.id ? -1 : 1
  const bound = { id: 'b', inclusive: false }
  const info = await replica.upkeep.replicaInfo(context)
  return texts({
    rows,
    descending: await collect(
      replica.scanDocuments({ start: bound, descending: true, limit: 2, body: false, leaves: false }, context),
    ),
    before: await replica.countDocuments({ before: bound, descending: false }, context),
    behind: await replica.countDocuments({ before: bound, descending: true }, context),
    counts: [info.documentCount, info.deletedCount, info.seen],
    changes: changes.map(({ sequence: _, ...row }) => row).sort(byId),
    sequencesAscend: changes.every((change, index) => index === 0 || change.sequence > changes[index - 1]!.sequence),
    snapshots: await Promise.all(documents.map(({ id }) => id).sort().map(async id => {
      const { sequence: _, ...snapshot } = (await replica.openDocument({ id, body: true, tree: true }, context))!
      return snapshot
    })),
    leaves: await replica.openRevisions(
      documents.map(({ id }) => id).sort().map(id => ({ id, revisions: 'leaves', latest: false })), context,
    ),
    latest: await replica.openRevisions([{ id: 'a', revisions: ['1-x', '2-y', '1-nothing'], latest: true }], context),
    diff: (await replica.diffRevisions(
      [{ id: 'a', revisions: ['1-x', '2-y', '3-z', '9-q'] }, { id: 'nothing', revisions: ['1-x'] }], context,
    ))
      .map(({ sequence: _, ...diff }) => diff),
    locals: await collect(replica.scanLocalDocuments({ descending: false }, context)),
  })
}

/** Converts bytes into text, so that a Buffer and a plain array of bytes compare as equal. */
function texts(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  if (Array.isArray(value)) return value.map(texts)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, texts(member)]))
}

function contentOf({ sequence, leaves, tree }: DocumentRecord): unknown {
  return { sequence, leaves, branches: tree.branches() }
}

/** An engine whose process crashes and whose disk fails; it records what was acknowledged. */
class CrashWorld {
  storage = new MemoryStorage()
  host!: ShardHost
  engine!: ShardEngine
  readonly clock = new ManualClock()
  readonly known = new KnownRevisions()
  /** How many checks found a document kept in memory. */
  keptSeen = 0
  readonly #acknowledged: DocumentRevision[] = []
  readonly #acknowledgedLocals = new Map<string, number>()
  readonly #acknowledgedCheckpoints = new Map<string, number>()
  readonly #open: Promise<void>[] = []

  static async start(): Promise<CrashWorld> {
    const world = new CrashWorld()
    await world.#boot()
    return world
  }

  async #boot(): Promise<void> {
    this.host = await ShardHost.open(shardRuntime(this.storage, this.clock))
    this.engine = await this.host.create(shardA)
  }

  async apply(step: Step): Promise<void> {
    if (step.kind === 'crash') await this.crash(step.keep)
    else if (step.kind === 'fail') this.storage.disk.failNextWrite('io')
    else if (step.kind === 'wait') await this.#wait(step.turns)
    else if (step.kind === 'update') {
      const edits = await Promise.all(step.edits.map(plan => this.known.edit(this.engine, plan)))
      this.#track(this.#update(edits))
    } else if (step.kind === 'store') this.#track(this.#store(storeRequest(step)))
    else this.#track(this.#local(step.id, step.value))
    this.#checkKept()
  }

  /** Reads all documents concurrently with the writes. */
  async #wait(turns: number): Promise<void> {
    this.#track(this.engine.diffRevisions(allIds.map(id => ({ id, revisions: ['1-x'] })), context).then(() => {}))
    for (let turn = 0; turn < turns; turn++) {
      await Promise.resolve()
      this.#checkKept()
    }
  }

  /** Checks that the documents kept in memory equal those in the store. */
  #checkKept(): void {
    const { keys, kept, store } = this.engine.records
    for (const id of allIds) {
      const record = kept?.get(id)
      if (record === undefined) continue
      const stored = store.getSync(keys.document(id))
      expect(stored
        && contentOf(DocumentRecord.decode(id, stored)), `what is kept of ${id}`).to.deep.equal(contentOf(record))
      this.keptSeen++
    }
  }

  /** Errors of the disk and of the crash are expected, and no others. */
  #track(call: Promise<void>): void {
    this.#open.push(call.catch((error: unknown) => {
      if (!['storage', 'closed'].includes((error as { code?: string }).code ?? '')) throw error
    }))
  }

  async #update(edits: readonly DocumentEdit[]): Promise<void> {
    const reply = await this.engine.updateDocuments({ edits, revsLimit: 1000 }, context)
    if (reply.kind === 'declined') throw new Error('declined')
    for (const [index, outcome] of reply.outcomes.entries()) {
      if (outcome.kind !== 'updated') continue
      const { id, deleted, body } = edits[index]!
      this.known.add(id, `${outcome.path.start}-${outcome.path.ids[0]}`)
      this.#acknowledged.push({ id, path: outcome.path, deleted, body })
    }
  }

  async #store(request: StoreRevisionsRequest): Promise<void> {
    await this.engine.storeRevisions(request, context)
    this.#acknowledged.push(...request.revisions)
    const { checkpoint } = request
    if (checkpoint !== undefined) {
      this.#acknowledgedCheckpoints.set(
        checkpoint.history, Math.max(checkpoint.sequence, this.#acknowledgedCheckpoints.get(checkpoint.history) ?? 0),
      )
    }
  }

  async #local(id: string, revision: number): Promise<void> {
    const reply = await this.engine.updateLocalDocument(
      { id, revision, body: Buffer.from('{}'), mustExist: false }, context,
    )
    if (reply.kind === 'updated') {
      this.#acknowledgedLocals.set(id, Math.max(reply.document.stamp, this.#acknowledgedLocals.get(id) ?? 0))
    }
  }

  async crash(keep: boolean): Promise<void> {
    this.storage.disk.setFaults({ keepUnsynced: () => keep })
    this.storage = this.storage.crash()
    await Promise.all(this.#open.splice(0))
    this.storage.disk.setFaults({})
    await this.#boot()
    await this.check()
  }

  async check(): Promise<void> {
    expect((await verifyShard(this.engine.records)).problems).to.deep.equal([])
    for (const { id, path } of this.#acknowledged) {
      const name = `${path.start}-${path.ids[0]}`
      const [diff] = await this.engine.diffRevisions([{ id, revisions: [name] }], context)
      expect(diff?.missing, `${id} ${name}`).to.deep.equal([])
    }
    for (const [id, stamp] of this.#acknowledgedLocals) {
      const [local] = await this.engine.openLocalDocuments([id], context)
      expect(local?.stamp).to.be.at.least(stamp)
    }
    const { seen } = await this.engine.upkeep.replicaInfo(context)
    for (const [history, sequence] of this.#acknowledgedCheckpoints) expect(seen[history]).to.be.at.least(sequence)
  }

  async stop(): Promise<void> {
    await this.host.close()
  }
}
