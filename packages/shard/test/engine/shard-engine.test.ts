import { expect } from 'chai'
import { treeRevisionsMax } from '@sectional/core'
import type { DocumentRevision, EditOutcome, UpdateDocumentsReply } from '@sectional/core'
import { ManualClock, MemoryDisk, MemoryStorage, Turns } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { FilterBudget } from '../../src/reading/id-filter.ts'
import { bodyChunkBytes } from '../../src/records/body-record.ts'
import { ShardWriter } from '../../src/writing/shard-writer.ts'
import { collect, context, edit, json, revision, shardA, shardB, shardRuntime } from '../shard-world.ts'

const syncDelayMs = 5
const counter = { add: () => {} }

describe('a shard engine', () => {
  let clock: ManualClock
  let storage: MemoryStorage
  let host: ShardHost
  let engine: ShardEngine

  beforeEach(async () => {
    clock = new ManualClock()
    storage = new MemoryStorage(new MemoryDisk(clock))
    host = await ShardHost.open(shardRuntime(storage, clock))
    engine = await host.create(shardA)
  })

  afterEach(async () => {
    storage.disk.setFaults({})
    await clock.advance(1000)
    await host.reclaimed()
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
    await host.close()
    expect(clock.pendingTimers).to.equal(0)
  })

  /** Makes each batch take `syncDelayMs` of the clock, so that calls arrive while one is in flight. */
  function slowDisk(): void {
    storage.disk.setFaults({ syncDelayMs: () => syncDelayMs })
  }

  async function outcome(id: string, parent: string | null, value: unknown): Promise<EditOutcome> {
    const reply = await engine.updateDocuments({ edits: [edit(id, parent, value)], revsLimit: 1000 }, context)
    return decided(reply)[0]!
  }

  function decided(reply: UpdateDocumentsReply): readonly EditOutcome[] {
    if (reply.kind !== 'decided') throw new Error(reply.kind)
    return reply.outcomes
  }

  async function code(promise: Promise<unknown>): Promise<unknown> {
    return promise.then(() => 'resolved', (error: { code?: string }) => error.code ?? error)
  }

  const sequences = async (): Promise<number[]> =>
    (await collect(engine.scanChanges({ since: 0, descending: false, body: false, locals: true }, context))).map(row =>
      row.sequence)

  it('lets one of many concurrent first edits win, before any of them is durable', async () => {
    slowDisk()
    const calls = Array.from({ length: 20 }, (_, index) => outcome('a', null, { index }))
    await clock.advance(syncDelayMs * 2)
    const outcomes = await Promise.all(calls)
    expect(outcomes.filter(({ kind }) => kind === 'updated')).to.have.length(1)
    expect((await engine.openDocument({ id: 'a', body: false, tree: false }, context))?.leaves).to.have.length(1)
  })

  it('extends a revision that is still in flight', async () => {
    slowDisk()
    const first = edit('a', null, { x: 1 })
    const calls = [outcome('a', null, { x: 1 }), outcome('a', `1-${first.revisionHash}`, { x: 2 })]
    await clock.advance(syncDelayMs * 2)
    expect((await Promise.all(calls)).map(({ kind }) => kind)).to.deep.equal(['updated', 'updated'])
    expect(await sequences()).to.deep.equal([2])
  })

  it('decides on the records of the newest batch in flight, also when an earlier one has become durable', async () => {
    slowDisk()
    const parent = `1-${edit('a', null, { x: 1 }).revisionHash}`
    const copied = async (sequence: number): Promise<void> => {
      const checkpoint = { history: 'other', sequence }
      const locals = [{ id: 'l', revision: 1, stamp: sequence, body: json({ sequence }) }]
      await Promise.all([
        engine.storeRevisions({ revisions: [], locals, revsLimit: 10, checkpoint }, context),
        engine.purgeDocuments({ purges: [], checkpoint }, context),
      ])
    }
    const calls: Promise<EditOutcome | void>[] = [outcome('a', null, { x: 1 }), copied(1)]
    await clock.advance(1)
    calls.push(outcome('a', parent, { x: 2 }), copied(9))
    await clock.advance(syncDelayMs)
    calls.push(outcome('a', parent, { x: 3 }), copied(5))
    await clock.advance(syncDelayMs * 2)
    const outcomes = (await Promise.all(calls)).filter(each => each !== undefined)
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(['updated', 'updated', 'conflict'])
    const { seen, purgesSeen } = await engine.upkeep.replicaInfo(context)
    expect([seen, purgesSeen]).to.deep.equal([{ other: 9 }, { other: 9 }])
    expect((await engine.openLocalDocuments(['l'], context))[0]?.stamp).to.equal(9)
  })

  it('shows readers only durable records', async () => {
    slowDisk()
    const writing = outcome('a', null, { x: 1 })
    await clock.advance(syncDelayMs - 1)
    expect(await engine.openDocument({ id: 'a', body: true, tree: false }, context)).to.equal(null)
    expect((await engine.upkeep.replicaInfo(context)).sequence).to.equal(0)
    await clock.advance(1)
    await writing
    expect(await engine.openDocument({ id: 'a', body: true, tree: false }, context)).not.to.equal(null)
  })

  it('reports a conflict only when the edit that won is durable', async () => {
    slowDisk()
    const first = outcome('a', null, { x: 1 })
    let answered = false
    const second = outcome('a', null, { x: 2 }).then(result => { answered = true; return result })
    await clock.advance(syncDelayMs - 1)
    expect(answered).to.equal(false)
    await clock.advance(syncDelayMs)
    expect([(await first).kind, (await second).kind]).to.deep.equal(['updated', 'conflict'])
  })

  it('confirms a known revision only when it is durable', async () => {
    slowDisk()
    const store = (): Promise<unknown> =>
      engine.storeRevisions({ revisions: [revision('a', ['x'], {})], revsLimit: 10 }, context)
    let confirmed = false
    const calls = [store(), store().then(() => { confirmed = true })]
    await clock.advance(syncDelayMs - 1)
    expect(confirmed).to.equal(false)
    await clock.advance(syncDelayMs)
    await Promise.all(calls)
  })

  it('fails writes decided on top of a failed batch, and decides later ones from the stored state', async () => {
    await outcome('kept', null, {})
    slowDisk()
    storage.disk.failNextWrite('io')
    const first = edit('a', null, { x: 1 })
    const failing = [outcome('a', null, { x: 1 }), outcome('a', `1-${first.revisionHash}`, { x: 2 })].map(code)
    await clock.advance(syncDelayMs * 2)
    expect(await Promise.all(failing)).to.deep.equal(['storage', 'storage'])
    const again = outcome('a', null, { x: 3 })
    await clock.advance(syncDelayMs * 3)
    expect((await again).kind).to.equal('updated')
    expect(await sequences()).to.deep.equal([1, 2])
  })

  it('has no position while the disk cannot be read behind a failed batch, and says so', async () => {
    await outcome('a', null, {})
    storage.disk.failNextWrite('io')
    expect(await code(outcome('b', null, {}))).to.equal('storage')
    storage.disk.setFaults({ failRead: () => 'io' })
    expect(await code(engine.waitForChange({ history: '', sequence: 0 }, context))).to.equal('storage')
    expect(engine.position()).to.equal(undefined)
    storage.disk.setFaults({})
    expect(engine.position()?.sequence).to.equal(1)
  })

  it('decides no call on top of a failed batch before the failure is noticed', async () => {
    await outcome('a', null, { x: 0 })
    for (let turns = 0; turns < 12; turns++) {
      storage.disk.failNextWrite('io')
      const failing = code(outcome('b', null, { turns }))
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const next = code(outcome(`c${turns}`, null, { turns }))
      await Promise.all([failing, next])
      expect((await verifyShard(engine.records)).problems).to.deep.equal([])
    }
  })

  it('declines to decide while it is catching up, unless it is forced', async () => {
    engine.setCatchingUp(true)
    const request = { edits: [edit('a', null, {})], revsLimit: 10 }
    expect(await engine.updateDocuments(request, context)).to.deep.equal({ kind: 'declined' })
    expect((await engine.upkeep.replicaInfo(context)).catchingUp).to.equal(true)
    expect((await engine.updateDocuments({ ...request, force: true }, context)).kind).to.equal('decided')
    engine.setCatchingUp(false)
    expect((await engine.upkeep.replicaInfo(context)).catchingUp).to.equal(false)
  })

  it('stores bodies of 8 MB, and drops all records of one with its revision', async () => {
    const large = { text: 'x'.repeat(8 * 1024 * 1024) }
    const first = edit('a', null, large)
    await engine.updateDocuments({ edits: [first], revsLimit: 1 }, context)
    const opened = await engine.openDocument({ id: 'a', body: true, tree: false }, context)
    expect(Buffer.compare(opened!.body!, first.body)).to.equal(0)
    const rows = await collect(engine.scanDocuments({ descending: false, body: true, leaves: false }, context))
    expect(rows[0]?.body?.length).to.equal(first.body.length)
    await engine.updateDocuments({ edits: [edit('a', `1-${first.revisionHash}`, {})], revsLimit: 1 }, context)
    const size = await engine.records.store.approximateSize(engine.records.keys.kind('b'))
    expect(size).to.be.lessThan(100)
  })

  it('stores bodies whose size is near a multiple of the chunk size', async () => {
    for (const length of [
      bodyChunkBytes - 1, bodyChunkBytes, bodyChunkBytes + 1, 2 * bodyChunkBytes, 2 * bodyChunkBytes + 1,
    ]) {
      const id = `${length}`
      const body = Buffer.alloc(length, 'x')
      await engine.storeRevisions(
        { revisions: [{ id, path: { start: 1, ids: ['x'] }, deleted: false, body }], revsLimit: 10 }, context,
      )
      const opened = await engine.openDocument({ id, body: true, tree: false }, context)
      expect(Buffer.compare(opened!.body!, body)).to.equal(0)
    }
  })

  it('returns pages with fewer rows when bodies are large', async () => {
    const edits = Array.from({ length: 8 }, (_, index) => edit(`${index}`, null, { text: 'x'.repeat(100_000) }))
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    const pages: number[] = []
    for await (const page of engine.scanChanges({ since: 0, descending: false, body: true, locals: false }, context)) {
      pages.push(page.length)
    }
    expect(pages).to.deep.equal([3, 3, 2])
  })

  it('decides bulk writes against batches in flight, and batches that land during the read-ahead', async () => {
    slowDisk()
    const bulk = (value: number): Promise<UpdateDocumentsReply> =>
      engine.updateDocuments(
        { edits: Array.from({ length: 100 }, (_, index) => edit(`${index}`, null, { value })), revsLimit: 10 }, context,
      )
    const calls = [bulk(1), bulk(2)]
    await clock.advance(syncDelayMs)
    calls.push(bulk(3))
    await clock.advance(syncDelayMs * 3)
    const updated = (await Promise.all(calls)).map(reply =>
      decided(reply).filter(({ kind }) => kind === 'updated').length)
    expect(updated.reduce((sum, count) => sum + count, 0)).to.equal(100)
    expect(await engine.countDocuments({ descending: false }, context)).to.equal(100)
  })

  /** Makes 100 documents and edits them all together. Returns the ids of those whose edit was a conflict. */
  async function conflictsOfBulk(duringReadAhead: (parents: readonly (string | null)[]) => Promise<void>) {
    const ids = Array.from({ length: 100 }, (_, index) => `${index}`)
    const editAll = (parents: readonly (string | null)[], value: number): Promise<UpdateDocumentsReply> =>
      engine.updateDocuments(
        { edits: ids.map((id, index) => edit(id, parents[index]!, { value })), revsLimit: 10 }, context,
      )
    const made = decided(await editAll(ids.map(() => null), 0))
    const parents = made.map(each => each.kind === 'updated' ? `1-${each.path.ids[0]}` : null)
    const { store } = engine.records
    const getMany = store.getMany.bind(store)
    store.getMany = async keys => {
      store.getMany = getMany
      const found = await getMany(keys)
      await duringReadAhead(parents)
      return found
    }
    const kinds = decided(await editAll(parents, 1)).map(({ kind }) => kind)
    return kinds.flatMap((kind, index) => kind === 'conflict' ? [ids[index]] : [])
  }

  it('decides a bulk write against an edit that becomes durable during the read-ahead', async () => {
    expect(await conflictsOfBulk(async parents => {
      expect((await outcome('7', parents[7]!, { value: 2 })).kind).to.equal('updated')
    })).to.deep.equal(['7'])
  })

  it('decides a bulk write against an edit that fails during the read-ahead, and is on the disk', async () => {
    expect(await conflictsOfBulk(async parents => {
      storage.disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
      expect(await code(outcome('7', parents[7]!, { value: 2 }))).to.equal('storage')
      storage.disk.setFaults({})
      expect((await outcome('other', null, {})).kind).to.equal('updated')
    })).to.deep.equal(['7'])
  })

  it('records a purge beside another one of the same document that is in flight', async () => {
    const purge = (uuid: string) =>
      engine.purgeDocuments({ purges: [{ uuid, id: 'a', paths: [{ start: 1, ids: ['x'] }] }] }, context)
    await engine.storeRevisions({ revisions: [revision('a', ['x'], {})], revsLimit: 10 }, context)
    slowDisk()
    const replies = Promise.all([purge('one'), purge('two')])
    await clock.advance(10 * syncDelayMs)
    expect(await replies).to.deep.equal([[['1-x']], [[]]])
    expect((await collect(engine.scanPurges(0, context))).map(({ uuid }) => uuid)).to.deep.equal(['one', 'two'])
  })

  it('confirms a purge that is repeated only when it is durable', async () => {
    const purge = () =>
      engine.purgeDocuments({ purges: [{ uuid: 'one', id: 'a', paths: [{ start: 1, ids: ['x'] }] }] }, context)
    await engine.storeRevisions({ revisions: [revision('a', ['x'], {})], revsLimit: 10 }, context)
    slowDisk()
    let confirmed = false
    const replies = Promise.all([purge(), purge().then(reply => { confirmed = true; return reply })])
    await clock.advance(syncDelayMs - 1)
    expect(confirmed).to.equal(false)
    await clock.advance(syncDelayMs)
    expect(await replies).to.deep.equal([[['1-x']], [[]]])
  })

  it('carries out a purge again that could not be written', async () => {
    const purge = () =>
      engine.purgeDocuments({ purges: [{ uuid: 'one', id: 'a', paths: [{ start: 1, ids: ['x'] }] }] }, context)
    await engine.storeRevisions({ revisions: [revision('a', ['x'], {})], revsLimit: 10 }, context)
    storage.disk.failNextWrite('io')
    expect(await code(purge())).to.equal('storage')
    expect(await purge()).to.deep.equal([['1-x']])
    expect(await engine.openDocument({ id: 'a', body: false, tree: false }, context)).to.equal(null)
    expect((await collect(engine.scanPurges(0, context))).map(({ uuid }) => uuid)).to.deep.equal(['one'])
  })

  it('rejects when the deadline passes, and completes the write nevertheless', async () => {
    slowDisk()
    const late = code(
      engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, { timeoutMs: syncDelayMs - 1 }),
    )
    await clock.advance(syncDelayMs)
    expect(await late).to.equal('timeout')
    expect(await engine.countDocuments({ descending: false }, context)).to.equal(1)
  })

  it('rejects when the caller cancels', async () => {
    slowDisk()
    const canceller = new AbortController()
    const cancelled = code(
      engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, { ...context, signal: canceller.signal }),
    )
    await clock.advance(1)
    canceller.abort()
    expect(await cancelled).to.equal('cancelled')
    const late = { ...context, signal: canceller.signal }
    expect(await code(engine.openDocument({ id: 'a', body: false, tree: false }, late))).to.equal('cancelled')
    const scan = engine.scanDocuments({ descending: false, body: false, leaves: false }, {
      ...context, signal: canceller.signal,
    })
    expect(await code(scan.next())).to.equal('cancelled')
  })

  it('refuses documents, but no deletion, in a partition that has as many bytes as the limit allows', async () => {
    const partitioned = await host.create(shardB, true)
    const write = async (id: string, partitionBytesMax: number, parent: string | null = null, deleted = false) => {
      const edits = [edit(id, parent, { id }, deleted)]
      return decided(await partitioned.updateDocuments({ edits, revsLimit: 10, partitionBytesMax }, context))[0]!
    }
    const first = await write('p:1', 1)
    const { sizes: { external } } = await partitioned.upkeep.partitionInfo('p', context)
    expect(await write('p:2', external)).to.deep.equal({ kind: 'partition_overflow' })
    expect(await write('q:2', external)).to.include({ kind: 'updated' })
    expect(await write('p:2', external + 1)).to.include({ kind: 'updated' })
    const parent = first.kind === 'updated' ? `1-${first.path.ids[0]}` : ''
    expect(await write('p:1', external, parent, true)).to.include({ kind: 'updated' })
  })

  it('reports that a partition is full only when the document that has filled it is durable', async () => {
    const partitioned = await host.create(shardB, true)
    const write = (id: string): Promise<unknown> => {
      const request = { edits: [edit(id, null, {})], revsLimit: 10, partitionBytesMax: 1 }
      return partitioned.updateDocuments(request, context).then(reply => decided(reply)[0]!.kind)
    }
    slowDisk()
    storage.disk.failNextWrite('io')
    const failing = [write('p:1'), write('p:2')].map(code)
    await clock.advance(syncDelayMs)
    expect(await Promise.all(failing)).to.deep.equal(['storage', 'storage'])
    const later = Promise.all([write('p:2'), write('p:1')])
    await clock.advance(syncDelayMs * 3)
    expect(await later).to.deep.equal(['updated', 'partition_overflow'])
  })

  it('counts the bytes of the documents of a partition that exist, not of those that they have replaced', async () => {
    const partitioned = await host.create(shardB, true)
    const write = async (parent: string | null, value: string, deleted = false): Promise<string> => {
      const edits = [edit('p:1', parent, { value }, deleted)]
      const [made] = decided(await partitioned.updateDocuments({ edits, revsLimit: 10 }, context))
      if (made?.kind !== 'updated') throw new Error('not written')
      return `${made.path.start}-${made.path.ids[0]}`
    }
    const external = async (): Promise<number> =>
      (await partitioned.upkeep.partitionInfo('p', context)).sizes.external
    const first = await write(null, 'long, to be replaced')
    const second = await write(first, 'short')
    expect(await external()).to.equal(json({ value: 'short' }).length)
    const third = await write(second, 'longer again')
    expect(await external()).to.equal(json({ value: 'longer again' }).length)
    const ids = [third, second, first].map(revision => revision.slice(2))
    await partitioned.purgeDocuments({ purges: [{ uuid: '1', id: 'p:1', paths: [{ start: 3, ids }] }] }, context)
    expect(await external()).to.equal(0)
  })

  it('reads many bodies together, also when one of them takes several records', async () => {
    const pad = 'x'.repeat(2 * bodyChunkBytes)
    const edits = Array.from({ length: 40 }, (_, index) => edit(`d${index}`, null, index === 20 ? { pad } : { index }))
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    const rows = await collect(
      engine.scanChanges({ since: 0, descending: false, body: true, locals: false }, context),
    )
    const bodies = new Map(rows.map(({ id, body }) => [id, body?.length]))
    expect(bodies).to.deep.equal(new Map(edits.map(({ id, body }) => [id, body.length])))
  })

  it('decides a large call when it is its turn, and not before', async () => {
    const turns = new Turns(clock)
    const turn = Promise.withResolvers<void>()
    let asked = 0
    turns.pause = () => {
      asked++
      return turn.promise
    }
    const writer = new ShardWriter(
      engine.records, clock, turns, { commits: counter, documents: counter, commitDocuments: { observe: () => {} } },
      new FilterBudget(0), () => {}, () => {},
    )
    let decisions = 0
    const write = (count: number): Promise<void> => {
      const ids = Array.from({ length: count }, (_, index) => `d${index}`)
      return writer.write(ids, () => { decisions++ })
    }
    await write(200)
    expect([asked, decisions]).to.deep.equal([0, 1])
    const large = write(201)
    await clock.advance(1000)
    expect([asked, decisions]).to.deep.equal([1, 1])
    turn.resolve()
    await large
    expect(decisions).to.equal(2)
    writer.close()
  })

  it('refuses ids that cannot be encoded in UTF-8', async () => {
    const edits = [edit('a\ud800', null, {})]
    expect(await code(engine.updateDocuments({ edits, revsLimit: 10 }, context))).to.equal('protocol')
    const locals = [{ id: '\udc00', revision: 1, stamp: 1, body: null }]
    expect(await code(engine.storeRevisions({ revisions: [], locals, revsLimit: 10 }, context))).to.equal('protocol')
  })

  it('returns the parent of a decided revision even when the revision limit stems it at once', async () => {
    const decide = async (parent: string | null, value: number): Promise<readonly string[]> => {
      const reply = await engine.updateDocuments({ edits: [edit('a', parent, { value })], revsLimit: 1 }, context)
      const outcome = reply.kind === 'decided' ? reply.outcomes[0] : undefined
      return outcome?.kind === 'updated' ? outcome.path.ids : []
    }
    const [first] = await decide(null, 1)
    const [second, ...ancestors] = await decide(`1-${first}`, 2)
    expect(ancestors).to.deep.equal([first])
    const snapshot = await engine.openDocument({ id: 'a', body: false, tree: true }, context)
    expect(snapshot?.tree?.map(({ path }) => path.ids)).to.deep.equal([[second]])
  })

  it('stores no second body when an edit makes an existing revision again', async () => {
    const made = edit('a', '1-aa', {}, true)
    await engine.storeRevisions(
      {
        revisions: [{ id: 'a', path: { start: 2, ids: [made.revisionHash] }, deleted: true, body: made.body }],
        revsLimit: 10,
      },
      context,
    )
    await engine.storeRevisions(
      { revisions: [{ id: 'a', path: { start: 1, ids: ['aa'] }, deleted: false, body: made.body }], revsLimit: 10 },
      context,
    )
    const reply = await engine.updateDocuments({ edits: [made], revsLimit: 10 }, context)
    expect(reply).to.deep.equal({
      kind: 'decided', outcomes: [{ kind: 'updated', path: { start: 2, ids: [made.revisionHash, 'aa'] } }],
    })
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
  })

  it('lists the rows of one call by id', async () => {
    await engine.updateDocuments({ edits: ['c', 'a', 'b'].map(id => edit(id, null, {})), revsLimit: 10 }, context)
    const rows = await collect(engine.scanChanges({ since: 0, descending: false, body: false, locals: false }, context))
    expect(rows.map(({ id }) => id)).to.deep.equal(['a', 'b', 'c'])
  })

  it('lists as many documents as the limit allows, however many deleted ones lie among them', async () => {
    const name = (index: number): string => `d${String(index).padStart(3, '0')}`
    const edits = Array.from({ length: 300 }, (_, index) => edit(name(index), null, {}, index % 100 > 4))
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    const listed = async (limit: number, descending: boolean): Promise<string[]> => {
      const request = { descending, limit, body: false, leaves: false }
      return (await collect(engine.scanDocuments(request, context))).map(({ id }) => id)
    }
    const live = [0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204].map(name)
    for (const limit of [1, 5, 7, 12, 20]) {
      expect(await listed(limit, false)).to.deep.equal(live.slice(0, limit))
      expect(await listed(limit, true)).to.deep.equal(live.toReversed().slice(0, limit))
    }
  })

  it('gives the newest change first when descending', async () => {
    const edits = Array.from({ length: 2000 }, (_, index) => edit(`${index}`, null, {}))
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    const rows = await collect(
      engine.scanChanges({ since: 0, descending: true, limit: 1, body: true, locals: false }, context),
    )
    expect(rows.map(({ sequence }) => sequence)).to.deep.equal([2000])
  })

  it('takes thousands of branches of one document in a time that grows with their number', async function () {
    this.timeout(60_000)
    const revisions = Array.from(
      { length: 3000 }, (_, index) => revision('a', [index.toString(16).padStart(32, '0')], {}),
    )
    const before = process.cpuUsage()
    for (let at = 0; at < revisions.length; at += 500) {
      await engine.storeRevisions({ revisions: revisions.slice(at, at + 500), revsLimit: 1000 }, context)
    }
    const parents = revisions.slice(0, 500).map(({ path }) => `1-${path.ids[0]!}`)
    await engine.updateDocuments(
      { edits: parents.map(parent => edit('a', parent, { after: parent })), revsLimit: 1000 }, context,
    )
    // Leaves count towards the size of a reply, however small their bodies are.
    const asked = Array.from({ length: 10 }, () => ({ id: 'a', revisions: 'leaves', latest: false }) as const)
    expect(await engine.openRevisions(asked, context)).to.have.length(2)
    const branches = (await engine.openDocument({ id: 'a', body: false, tree: true }, context))!.tree!
    expect(branches).to.have.length(3000)
    const [purged] = await engine.purgeDocuments(
      { purges: [{ uuid: 'p', id: 'a', paths: branches.map(({ path }) => path) }] }, context,
    )
    expect(purged).to.have.length(3000)
    expect(await engine.openDocument({ id: 'a', body: false, tree: false }, context)).to.equal(null)
    // This took minutes when each branch searched all other branches.
    expect(process.cpuUsage(before).user).to.be.below(5_000_000)
  })

  it('takes a call with long branches of a document with many long branches in a short time', async function () {
    this.timeout(60_000)
    const store = async (from: number, branches: number, depth: number): Promise<void> => {
      const revisions = Array.from({ length: branches }, (_, index): DocumentRevision => {
        const hashes = Array.from({ length: depth }, (_, up) =>
          ((from + index) * 1000 + up).toString(16).padStart(32, '0'))
        return revision('a', hashes, {})
      })
      await engine.storeRevisions({ revisions, revsLimit: 900, external: true }, context)
    }
    for (let from = 0; from < 60; from += 10) await store(from, 10, 1000)
    const before = process.cpuUsage()
    await store(60, 500, 20)
    // This took more than ten seconds when the tree was stemmed after each revision.
    expect(process.cpuUsage(before).user).to.be.below(2_000_000)
    const branches = (await engine.openDocument({ id: 'a', body: false, tree: true }, context))!.tree!
    expect(branches).to.have.length(560)
    expect(branches.reduce((sum, { path }) => sum + path.ids.length, 0)).to.be.at.most(treeRevisionsMax)
  })

  it('looks for rivals of hundreds of branches of a document with thousands in a short time', async function () {
    this.timeout(60_000)
    const store = async (from: number, count: number): Promise<readonly number[]> => {
      const revisions = Array.from({ length: count }, (_, index): DocumentRevision => {
        const hashes = Array.from({ length: 8 }, (_, up) => ((from + index) * 8 + up).toString(16).padStart(32, '0'))
        return { ...revision('a', hashes, {}), ...(from > 0 && { attempt: from + index }) }
      })
      return (await engine.storeRevisions({ revisions, revsLimit: 1000 }, context)).rivals
    }
    await store(0, 4000)
    const before = process.cpuUsage()
    // Each branch has its own first revision, and stemming has removed nothing.
    expect(await store(4000, 300)).to.have.length(0)
    // This took many seconds when the ancestors of all branches were collected for each revision.
    expect(process.cpuUsage(before).user).to.be.below(1_500_000)
  })

  it('opens hundreds of single revisions of a document with thousands of branches in a short time', async function () {
    this.timeout(60_000)
    const revisions = Array.from({ length: 10_000 }, (_, index) =>
      revision('a', [index.toString(16).padStart(32, '0'), 'root'], {}))
    for (let at = 0; at < revisions.length; at += 5000) {
      await engine.storeRevisions({ revisions: revisions.slice(at, at + 5000), revsLimit: 1000 }, context)
    }
    const requests = revisions.slice(0, 500).map(({ path }) => (
      { id: 'a', revisions: [`2-${path.ids[0]}`], latest: false }))
    const before = process.cpuUsage()
    expect(await engine.openRevisions(requests, context)).to.have.length(500)
    // This took several seconds and a gigabyte of memory when the record was decoded for each request.
    expect(process.cpuUsage(before).user).to.be.below(1_000_000)
    const inner = Array.from({ length: 256 }, () => ({ id: 'a', revisions: ['1-root'], latest: true }))
    expect((await engine.openRevisions(inner, context))[0]).to.have.length(10_000)
  })

  it('takes a call with thousands of branches of a document that has thousands in a short time', async function () {
    this.timeout(60_000)
    const branch = (index: number): DocumentRevision => revision('a', [index.toString(16).padStart(32, '0')], {})
    const store = async (from: number): Promise<void> => {
      const revisions = Array.from({ length: 3000 }, (_, index) => branch(from + index))
      await engine.storeRevisions({ revisions, revsLimit: 1000 }, context)
    }
    for (let from = 0; from < 12_000; from += 3000) await store(from)
    const before = process.cpuUsage()
    await store(12_000)
    // This took more than ten seconds when all leaves were listed for each new branch.
    expect(process.cpuUsage(before).user).to.be.below(2_000_000)
  })
})
