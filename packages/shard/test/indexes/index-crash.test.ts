import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8, indexId, newestPosition, withoutHead } from '@sectional/core'
import type { CallContext, ChangeReplica, IndexDefinition, IndexHead, ScanChangesRequest } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryDisk, MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { placeText, readPlace } from '../../src/indexes/index-keys.ts'
import { indexStoreName, IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { addDigest, digestText, documentDigest, emptyDigest } from '../../src/indexes/rows-digest.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'concatenate', options: {} }
const index = indexId(definition)

interface Plan { readonly value: number; readonly rows: number }

/** Returns the rows of a document: their keys depend on the value, and a plan of no rows fails. */
function mapped({ value, rows }: Plan): readonly { readonly key: string; readonly value: Uint8Array }[] {
  if (rows === 0) throw new Error('there are no rows')
  return Array.from({ length: rows }, (_, at) =>
    ({ key: String.fromCharCode((value * 37 + at * 11) % 256), value: Buffer.from(`[${value},${at % 3}]`) }))
}

const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) => documents.map(({ body }) => {
    try {
      return { rows: mapped(JSON.parse(Buffer.from(body!).toString()) as Plan) }
    } catch (error) {
      return { error: String(error) }
    }
  }),
  groupOf: (key, level) => key.slice(0, level),
  reduce: async (_definition, lists) => lists.map(rows => Buffer.concat(rows.map(({ value }) => value))),
  rereduce: async (_definition, lists) => lists.map(values => Buffer.concat(values)),
  encodeGroup: (_definition, _row, _level, value) => value,
}

/** A replica whose pages of changes are small, with a turn of the event loop before each. */
function inSmallPages(replica: MemoryShardReplica, pageRows: number): ChangeReplica {
  const scanChanges = async function* (request: ScanChangesRequest, call: CallContext) {
    for await (const page of replica.scanChanges(request, call)) {
      for (let at = 0; at < page.length; at += pageRows) {
        await setImmediate()
        yield page.slice(at, at + pageRows)
      }
    }
  }
  return { scanChanges, waitForChange: replica.waitForChange.bind(replica) } as unknown as ChangeReplica
}

/** A durable replica, and indexes of it that crash. */
class CrashWorld {
  readonly disk = new MemoryDisk()
  #replica = new MemoryShardReplica({ history: 'one' })
  #histories = 1
  readonly #pageRows: number
  /** The rows of the states that builds have reached, by version. */
  readonly #versions = new Map<string, readonly string[]>()
  /** How often the rows were compared with their reduction. */
  compared = 0
  #storage = new MemoryStorage(this.disk)
  #store: IndexStore | undefined
  #indexes: ShardIndexes | undefined
  #starts = 0
  #purges = 0

  constructor(pageRows: number) {
    this.#pageRows = pageRows
  }

  async start(): Promise<void> {
    const random = new SeededRandom(++this.#starts)
    this.#store = await IndexStore.open({ storage: this.#storage, log: silentLog, random, clock: new RealClock() })
    this.#open()
  }

  #open(): void {
    const clock = new RealClock()
    this.#indexes = new ShardIndexes({
      owner: 'shard', database: 'db',
      store: this.#store!, replica: inSmallPages(this.#replica, this.#pageRows), indexer,
      queue: new BuildQueue(clock), clock, turns: new Turns(clock),
    })
  }

  async write(id: string, plan: Plan | null): Promise<void> {
    const found = await this.#replica.openDocument({ id, body: false, tree: false }, context)
    const winner = found?.leaves[0]
    const parent = winner === undefined || winner.deleted ? null : winner.revision
    if (plan === null && parent === null) return
    await this.#replica.updateDocuments(
      { edits: [edit(id, parent, plan ?? {}, plan === null)], revsLimit: 10 }, context)
  }

  async purge(id: string): Promise<void> {
    const found = await this.#replica.openDocument({ id, body: false, tree: false }, context)
    const paths = (found?.leaves ?? []).map(({ revision }) =>
      ({ start: parseInt(revision), ids: [revision.split('-')[1]!] }))
    await this.#replica.purgeDocuments({ purges: [{ uuid: `purge-${++this.#purges}`, id, paths }] }, context)
  }

  /** Replaces the replica by one with another history that has the same documents, in another order. */
  async replace(): Promise<void> {
    const old = this.#replica
    this.#replica = new MemoryShardReplica({ history: `history-${++this.#histories}` })
    const documents: { readonly id: string; readonly plan: Plan }[] = []
    for await (const page of old.scanDocuments({ descending: true, body: true, leaves: false }, context)) {
      for (const { id, body } of page) documents.push({ id, plan: JSON.parse(Buffer.from(body!).toString()) as Plan })
    }
    for (const { id, plan } of documents) await this.write(id, plan)
    // The indexes of a replica never read another one: its history names other indexes.
    await this.#indexes!.close()
    this.#open()
  }

  /** Lets a build run until it has ended, or the indexes have crashed. Resolves also when it fails. */
  async attempt(): Promise<void> {
    const request = { definition, through: 'newest' as const, waitMs: 5000 }
    await this.#indexes!.buildIndex(request, context).catch(() => {})
  }

  /** Loses the store of indexes, as when the disk is replaced and the documents come from other replicas. */
  async loseStore(): Promise<void> {
    this.#storage = this.#storage.crash()
    await this.#indexes!.close()
    await this.#storage.remove(indexStoreName)
    await this.start()
  }

  /** Makes the replica forget its purges, so that an index that has not read them must begin anew. */
  async forgetPurges(): Promise<void> {
    await this.#replica.trimPurges((await newestPosition(this.#replica, context)).sequence, context)
  }

  /** Begins a build, and lets it run for some turns. */
  async begin(turns: number): Promise<void> {
    this.#indexes!.buildIndex({ definition, through: 'newest', waitMs: 0 }, context).catch(() => {})
    for (let turn = 0; turn < turns; turn++) await setImmediate()
  }

  async build(): Promise<void> {
    for (;;) {
      try {
        const request = { definition, through: 'newest' as const, waitMs: 5000 }
        const { position, through } = await this.#indexes!.buildIndex(request, context)
        expect(position.sequence).to.be.at.least(through)
        return
      } catch (error) {
        // A failed write ends the build. The next one continues.
        expect(error).to.include({ code: 'storage' })
      }
    }
  }

  /** Loses the newest batches that the indexes have written, and starts again. */
  async crash(lost: number): Promise<void> {
    this.disk.setFaults({ loseNewest: (_store, batches) => Math.min(lost, batches) })
    this.#storage = this.#storage.crash()
    await this.#indexes!.close()
    await this.start()
  }

  async stop(): Promise<void> {
    await this.#indexes!.close()
    await this.#store!.cleared()
    await this.#store!.close()
  }

  /** Checks that the state of the index is consistent in itself. Returns its rows, none when there is no index. */
  async rows(): Promise<readonly string[]> {
    const heads: IndexHead[] = []
    const rows: string[] = []
    const values: string[] = []
    const everything = { index, through: 0, ranges: [{}], descending: false }
    const onHead = (head: IndexHead): void => { heads.push(head) }
    try {
      for await (const page of withoutHead(this.#indexes!.scanIndex(everything, context), onHead)) {
        for (const row of page) {
          values.push(Buffer.from(row.value).toString())
          rows.push(`${placeText(row)}=${values.at(-1)}`)
        }
      }
      for (const lower of ['', '\u0020', '\u0060', '\u00a0']) {
        const range = { lower: { key: lower, inclusive: true } }
        const request = { ...everything, ranges: [range], groupLevel: 0 } as const
        let reduced = ''
        for await (const page of withoutHead(this.#indexes!.reduceIndex(request, context), onHead)) {
          for (const { value } of page) reduced += Buffer.from(value).toString()
        }
        // A build may have changed the index between the two reads.
        if (heads[0]!.version !== heads.at(-1)!.version) continue
        this.compared++
        expect(reduced).to.equal(values.filter((_, at) => readPlace(rows[at]!).key >= lower).join(''))
      }
    } catch (error) {
      expect(error).to.include({ code: 'not_hosted' })
      return []
    }
    const [head] = heads
    expect(head!.rowCount).to.equal(rows.length)
    const same = this.#versions.get(head!.version)
    if (same !== undefined) expect(rows).to.deep.equal(same)
    this.#versions.set(head!.version, rows)
    return rows
  }

  /** Compares the index with the rows that the documents have now. */
  async check(): Promise<void> {
    await this.build()
    const expected: { readonly place: string; readonly value: string }[] = []
    let failed = 0
    let digest = emptyDigest
    const request = { descending: false, body: true, leaves: false }
    for await (const page of this.#replica.scanDocuments(request, context)) {
      for (const { id, body } of page) {
        const plan = JSON.parse(Buffer.from(body!).toString()) as Plan
        if (plan.rows === 0) failed++
        else {
          digest = addDigest(digest, documentDigest(id, mapped(plan)))
          expected.push(...mapped(plan).map(({ key, value }, number) =>
            ({ place: placeText({ key, id, number }), value: Buffer.from(value).toString() })))
        }
      }
    }
    expected.sort((a, b) => compareUtf8(a.place, b.place))
    expect(await this.rows()).to.deep.equal(expected.map(({ place, value }) => `${place}=${value}`))
    const { failedCount, version } = await this.#indexes!.indexInfo(index, context)
    expect([failedCount, version]).to.deep.equal([failed, digestText(digest)])
  }
}

type Step =
  | { readonly kind: 'write'; readonly id: number; readonly plan: Plan | null }
  | { readonly kind: 'purge'; readonly id: number }
  | { readonly kind: 'begin'; readonly turns: number }
  | { readonly kind: 'build' }
  | { readonly kind: 'read' }
  | { readonly kind: 'fail'; readonly landed: boolean }
  | { readonly kind: 'crash'; readonly lost: number }
  | { readonly kind: 'replace' | 'lose' | 'forget' }

const id = fc.integer({ min: 0, max: 12 })
const plan = fc.record({ value: fc.integer({ min: 0, max: 4 }), rows: fc.constantFrom(0, 1, 3, 40, 90) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('write' as const), id, plan: fc.option(plan, { freq: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('purge' as const), id }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin' as const), turns: fc.integer({ min: 0, max: 12 }) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'build' as const }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'read' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), landed: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('replace' as const, 'lose' as const, 'forget' as const) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('crash' as const), lost: fc.integer({ min: 0, max: 12 }) }) },
)

describe('indexes under crashes', () => {
  it('are consistent during builds and after any loss of batches, and then equal a recomputation', async () => {
    let crashes = 0
    let compared = 0
    const work = fc.array(step, { minLength: 5, maxLength: 60, size: 'max' })
    await fc.assert(fc.asyncProperty(work, fc.integer({ min: 1, max: 5 }), async (steps, pageRows) => {
      const world = new CrashWorld(pageRows)
      await world.start()
      for (const each of steps) {
        if (each.kind === 'write') await world.write(`d${each.id}`, each.plan)
        else if (each.kind === 'purge') await world.purge(`d${each.id}`)
        else if (each.kind === 'begin') await world.begin(each.turns)
        else if (each.kind === 'build') await world.build()
        else if (each.kind === 'read') await world.rows()
        else if (each.kind === 'fail') {
          let failures = 0
          world.disk.setFaults({
            failWrite: () => failures++ === 0 ? 'io' : undefined, landFailed: () => each.landed,
          })
        } else if (each.kind === 'replace') await world.replace()
        else if (each.kind === 'forget') await world.forgetPurges()
        else if (each.kind === 'lose') await world.loseStore()
        else if (each.kind === 'crash') {
          await world.crash(each.lost)
          crashes++
          await world.rows()
          await world.check()
        }
      }
      await world.crash(3)
      await world.rows()
      await world.check()
      await world.stop()
      compared += world.compared
      expect(world.disk.entries(indexStoreName).filter(([key]) => key.startsWith('\0\0\0\0x'))).to.deep.equal([])
    }), { numRuns: 120 })
    expect(crashes).to.be.above(100)
    expect(compared).to.be.above(2000)
  }).timeout(60_000)

  it('are consistent when the process ends at any read or write of the store', async () => {
    let ended = false
    for (let at = 1; !ended; at++) {
      const world = new CrashWorld(3)
      await world.start()
      const crashes = Promise.withResolvers<boolean>()
      let operations = 0
      const count = (): undefined => {
        if (++operations === at) crashes.resolve(false)
      }
      let isStopped = false
      const write = async (ids: readonly number[], plan: (id: number) => Plan | null): Promise<void> => {
        for (const each of ids) if (!isStopped) await world.write(`d${each}`, plan(each))
      }
      const work = async (): Promise<void> => {
        await write([1, 2, 3, 4, 5, 6], each => ({ value: each, rows: 90 }))
        await world.attempt()
        await write([2, 3, 7], each => each === 3 ? null : { value: each + 1, rows: 40 })
        if (!isStopped) await world.purge('d4')
        await world.attempt()
        if (isStopped) return
        await world.replace()
        await world.attempt()
      }
      world.disk.setFaults({ failWrite: count, failRead: count })
      const working = work()
      ended = await Promise.race([working.then(() => true), crashes.promise])
      isStopped = true
      await world.crash(at % 4)
      await working
      await world.rows()
      await world.check()
      await world.stop()
      expect(at).to.be.below(2000)
    }
  }).timeout(120_000)
})
