import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '@sectional/core'
import type { ApiError } from '@sectional/core'
import type { ListDocumentsOptions } from '../../src/contracts/coordinator.ts'
import { bytes, edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'

const everything: ListDocumentsOptions = { descending: false, skip: 0, limit: null, body: false, leaves: false }

async function filled(world: ReplicaWorld, ids: readonly string[]): Promise<void> {
  await world.coordinator(world.nodes[0]!)
    .updateDocuments(world.db, ids.map(id => edit(id, null, { id })), { w: world.nodes.length }, request())
}

async function collect<Row>(rows: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const all: Row[] = []
  for await (const page of rows) all.push(...page)
  return all
}

describe('listing documents', () => {
  it('returns for every option the same rows as one sorted array', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `d${String(i).padStart(2, '0')}`)
    const world = new ReplicaWorld({ q: 4, coordinator: { listPageRows: 7 } })
    await filled(world, ids)
    const coordinator = world.coordinator('b')
    const bound = fc.record({ id: fc.constantFrom('', ...ids, 'd05x', 'z'), inclusive: fc.boolean() })
    const options = fc.record({
      start: fc.option(bound, { nil: undefined }), end: fc.option(bound, { nil: undefined }),
      descending: fc.boolean(), skip: fc.nat(12), limit: fc.option(fc.nat(12)),
    })
    await fc.assert(fc.asyncProperty(options, async ({ start, end, descending, skip, limit }) => {
      const list = await coordinator.listDocuments(
        world.db, { ...everything, start, end, descending, skip, limit }, request(),
      )
      const order = descending ? ids.toReversed() : ids
      const sign = descending ? -1 : 1
      const reached = (id: string, at: { id: string; inclusive: boolean } | undefined, side: number): boolean => {
        const difference = at === undefined ? 1 : compareUtf8(id, at.id) * sign * side
        return difference > 0 || (difference === 0 && at!.inclusive)
      }
      const expected = order.filter(id => reached(id, start, 1) && reached(id, end, -1))
        .slice(skip, limit === null ? undefined : skip + limit)
      expect((await collect(list.rows)).map(row => row.id)).to.deep.equal(expected)
      expect(list.total).to.equal(40)
      expect(list.offset).to.equal(Math.min(40, order.filter(id => !reached(id, start, 1)).length + skip))
    }), { numRuns: 60 })
  })

  it('keeps to a partition', async () => {
    const world = new ReplicaWorld({ q: 4, partitioned: true })
    await filled(world, ['p:1', 'p:2', 'p:3', 'q:1', 'pp:1', 'o:9', 'p;x:1'])
    const coordinator = world.coordinator('a')
    const up = await coordinator.listDocuments(world.db, { ...everything, partition: 'p' }, request())
    expect((await collect(up.rows)).map(row => row.id)).to.deep.equal(['p:1', 'p:2', 'p:3'])
    expect([up.total, up.offset]).to.deep.equal([3, 0])
    const down = await coordinator.listDocuments(
      world.db, { ...everything, partition: 'p', descending: true, start: { id: 'p:2', inclusive: true } }, request(),
    )
    expect((await collect(down.rows)).map(row => row.id)).to.deep.equal(['p:2', 'p:1'])
    expect([down.total, down.offset]).to.deep.equal([3, 1])
  })

  it('sends bodies and leaves on request', async () => {
    const world = new ReplicaWorld({ q: 2 })
    await filled(world, ['x'])
    const list = await world.coordinator('c')
      .listDocuments(world.db, { ...everything, body: true, leaves: true }, request())
    const [row] = await collect(list.rows)
    expect(Buffer.from(row!.body!).toString()).to.equal('{"id":"x"}')
    expect(row!.leaves).to.have.length(1)
  })

  it('continues on another replica after the last row when one fails', async () => {
    const ids = Array.from({ length: 450 }, (_, i) => `d${String(i).padStart(3, '0')}`)
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c', 'out'], n: 3 })
    await filled(world, ids)
    world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
    world.faults.set('b', { kind: 'break-scan', afterPages: 1 })
    for (const limit of [null, 320]) {
      const list = await world.coordinator('out').listDocuments(world.db, { ...everything, limit }, request())
      expect((await collect(list.rows)).map(row => row.id)).to.deep.equal(ids.slice(0, limit ?? undefined))
    }
    world.faults.set('a', { kind: 'hang' })
    const list = await world.during(world.coordinator('out').listDocuments(world.db, everything, request()))
    expect(await world.during(collect(list.rows))).to.have.length(450)
  })

  it('continues on another replica when one is silent, after the time of its probe', async () => {
    const ids = Array.from({ length: 450 }, (_, i) => `d${String(i).padStart(3, '0')}`)
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c', 'out'], n: 3 })
    await filled(world, ids)
    const coordinator = world.coordinator('out')
    const list = await world.during(coordinator.listDocuments(world.db, everything, request()))
    for (const node of ['a', 'b']) world.faults.set(node, { kind: 'hang' })
    const begin = world.clock.monotonic()
    expect((await world.during(collect(list.rows))).map(row => row.id)).to.deep.equal(ids)
    expect(world.clock.monotonic() - begin).to.be.below(2000)
    // A replica that is only slow answers its probe, and keeps its reader.
    const slow = await world.during(coordinator.listDocuments(world.db, everything, request()))
    for (const node of ['a', 'b', 'c']) world.faults.set(node, { kind: 'hang', verbs: ['scanDocuments'] })
    const error = await world.during(collect(slow.rows)).then(() => null, (thrown: unknown) => thrown)
    expect(error).to.have.property('error', 'timeout')
    await coordinator.stop()
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('waits longer for a slow page when no other replica can take over', async () => {
    for (const [n, calls] of [[1, 1], [2, 2]] as const) {
      const world = new ReplicaWorld({ nodes: ['a', 'b', 'out'], n })
      await filled(world, ['x'])
      const [holder] = world.db.shards[0]!.replicas
      world.faults.set(holder!.node, { kind: 'delay', ms: 15_000, verbs: ['scanDocuments'] })
      world.calls.length = 0
      const list = await world.during(world.coordinator('out').listDocuments(world.db, everything, request()))
      expect(await world.during(collect(list.rows))).to.have.length(1)
      expect(world.calls.filter(({ verb }) => verb === 'scanDocuments')).to.have.length(calls)
    }
  })

  it('asks a replica that catches up after an absence only when no other is there', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    await world.coordinator('b').updateDocuments(world.db, [edit('missed', null, {})], { w: 2 }, request())
    world.heal()
    world.store('a').catchingUp = true
    const list = async (): Promise<string[]> =>
      (await collect((await world.coordinator('a').listDocuments(world.db, everything, request())).rows)).map(row =>
        row.id)
    expect(await list()).to.deep.equal(['missed'])
    const [opened] = await world.coordinator('a').openDocuments(world.db, ['missed'], { body: true }, request())
    expect(opened).to.not.equal(null)
    world.isolate('a')
    expect(await list()).to.deep.equal([])
  })

  it('fails when no replica of a range is left, and ends what it opened when the reader stops early', async () => {
    const ids = Array.from({ length: 300 }, (_, i) => `d${i}`)
    const world = new ReplicaWorld({ q: 3, coordinator: { listPageRows: 10 } })
    await filled(world, ids)
    const coordinator = world.coordinator('a')
    const list = await coordinator.listDocuments(world.db, everything, request())
    for await (const page of list.rows) {
      expect(page).to.have.length(10)
      break
    }
    const doomed = await coordinator.listDocuments(world.db, everything, request())
    for (const node of world.nodes) world.faults.set(node, { kind: 'fail', code: 'unreachable' })
    const error = await collect(doomed.rows).then(() => null, (thrown: unknown) => thrown)
    expect(error).to.have.property('status', 503)
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('opens many documents in order, and sums a database', async () => {
    const world = new ReplicaWorld({ q: 4 })
    await filled(world, ['p', 'q', 'r'])
    const coordinator = world.coordinator('b')
    const opened = await coordinator.openDocuments(world.db, ['r', 'none', 'p'], { body: true }, request())
    expect(opened.map(each => each && Buffer.from(each.body!).toString())).to.deep.equal([
      '{"id":"r"}', null, '{"id":"p"}',
    ])
    const info = await coordinator.databaseInfo(world.db, request())
    expect(info).to.deep.include({ documentCount: 3, deletedCount: 0 })
    expect(info.updateSequence).to.match(/^3-/)
  })
})

describe('local documents', () => {
  const write = (id: string, revision: number, value: unknown, mustExist = false) => ({
    id, revision, body: value === null ? null : bytes(value), mustExist,
  })

  it('are stamped once, read by the greatest stamp, listed and deleted', async () => {
    const world = new ReplicaWorld({ q: 4 })
    const coordinator = world.coordinator('b')
    for (const id of ['p', 'q', 'r']) {
      expect(await coordinator.updateLocalDocument(world.db, write(id, 1, { id }), {}, request())).to.deep.equal({
        kind: 'written', revision: 1, accepted: false,
      })
    }
    await coordinator.updateLocalDocument(world.db, write('p', 2, { again: true }), { w: 3 }, request())
    const opened = await world.coordinator('c').openLocalDocument(world.db, 'p', {}, request())
    expect(Buffer.from(opened!.body!).toString()).to.equal('{"again":true}')
    expect(opened!.revision).to.equal(2)
    const skipped = await coordinator.listLocalDocuments(world.db, { ...everything, skip: 1 }, request())
    expect((await collect(skipped.rows)).map(local => local.id)).to.deep.equal(['q', 'r'])
    expect(await coordinator.updateLocalDocument(world.db, write('p', 0, null, true), { w: 3 }, request())).to.include({
      kind: 'written',
    })
    expect(await coordinator.openLocalDocument(world.db, 'p', {}, request())).to.equal(null)
    expect(await coordinator.updateLocalDocument(world.db, write('p', 0, null, true), {}, request())).to.deep.equal({
      kind: 'missing',
    })
  })

  it('reach a replica that missed them when they are read', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    await world.coordinator('b').updateLocalDocument(world.db, write('x', 1, { v: 1 }), {}, request())
    world.heal()
    const coordinator = world.coordinator('a')
    expect(await coordinator.openLocalDocument(world.db, 'x', {}, request())).to.have.property('revision', 1)
    await coordinator.stop()
    world.isolate('a')
    expect(await coordinator.openLocalDocument(world.db, 'x', {}, request())).to.have.property('revision', 1)
  })

  it('leave room for writes to the replicas that were repaired by reads', async () => {
    const world = new ReplicaWorld({ coordinator: { nodeStoresMax: 2 } })
    const ids = Array.from({ length: 5 }, (_, index) => `x${index}`)
    world.isolate('c')
    for (const id of ids) {
      await world.coordinator('b').updateLocalDocument(world.db, write(id, 1, { id }), {}, request())
    }
    world.heal()
    const coordinator = world.coordinator('a')
    for (const id of ids) {
      await coordinator.openLocalDocument(world.db, id, { r: 3 }, request())
      await world.clock.advance(0)
    }
    expect((await world.store('c').openLocalDocuments(ids, plainCall)).filter(Boolean)).to.have.length(ids.length)
    const [outcome] = await world.during(
      coordinator.updateDocuments(world.db, [edit('y', null, {})], { w: 3 }, request()))
    expect(outcome).to.include({ kind: 'written', accepted: false })
    await coordinator.stop()
  })

  it('can be deleted through a replica that has missed their creation', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    await world.coordinator('b').updateLocalDocument(world.db, write('x', 1, { v: 1 }), {}, request())
    world.heal()
    expect(await world.coordinator('c')
      .updateLocalDocument(world.db, write('x', 0, null, true), { w: 3 }, request())).to.include({ kind: 'written' })
    expect(await world.coordinator('b').openLocalDocument(world.db, 'x', { r: 3 }, request())).to.equal(null)
  })

  it('replace a version that the replica which stamps them has missed, even if its clock is behind', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('b')
    await coordinator.updateLocalDocument(world.db, write('x', 1, { v: 1 }), { w: 3 }, request())
    world.isolate('a')
    world.time += 3_600_000
    await coordinator.updateLocalDocument(world.db, write('x', 2, { v: 2 }), { w: 2 }, request())
    world.time -= 3_600_000
    world.heal()
    world.faults.set('a', { kind: 'delay', ms: 50, verbs: ['storeRevisions'] })
    await world.during(coordinator.updateLocalDocument(world.db, write('x', 3, { v: 3 }), { w: 2 }, request()))
    const opened = await world.coordinator('c').openLocalDocument(world.db, 'x', { r: 3 }, request())
    expect(Buffer.from(opened!.body!).toString()).to.equal('{"v":3}')
  })

  for (const [code, status] of [['overloaded', 503], ['unreachable', 503], ['storage', 507]] as const) {
    it(`are refused with ${status} when each replica fails with ${code}`, async () => {
      const world = new ReplicaWorld()
      for (const node of world.nodes) world.faults.set(node, { kind: 'fail', code })
      const failure: unknown = await world.coordinator('a')
        .updateLocalDocument(world.db, write('x', 1, {}), {}, request()).catch((error: unknown) => error)
      expect(failure).to.include({ status })
    })
  }

  it('are not answered as missing when a replica may have deleted them and its answer was lost', async () => {
    const world = new ReplicaWorld()
    const remove = (): Promise<string | number> => world.coordinator('b')
      .updateLocalDocument(world.db, write('x', 0, null, true), {}, request())
      .then(({ kind }) => kind, (error: ApiError) => error.status)
    await world.coordinator('a').updateLocalDocument(world.db, write('x', 1, { v: 1 }), { w: 3 }, request())
    world.faults.set('a', { kind: 'lose-reply', verbs: ['updateLocalDocument'] })
    expect(await remove()).to.equal(503)
    expect(await world.coordinator('c').openLocalDocument(world.db, 'x', { r: 3 }, request())).to.equal(null)
    world.faults.set('a', { kind: 'fail', code: 'overloaded', verbs: ['updateLocalDocument'] })
    expect(await remove(), 'a has done nothing').to.equal('missing')
  })
})

describe('a list of large documents', () => {
  it('is handed on in pages of bounded size, whatever the number of shards', async () => {
    const world = new ReplicaWorld({ q: 4, coordinator: { listPageBytes: 10_000 } })
    const names = Array.from({ length: 200 }, (_, i) => `doc${String(i).padStart(3, '0')}`)
    await world.coordinator('a')
      .updateDocuments(world.db, names.map(id => edit(id, null, { text: 'x'.repeat(1000) })), { w: 3 }, request())
    const { rows } = await world.coordinator('b').listDocuments(world.db, { ...everything, body: true }, request())
    const listed: string[] = []
    for await (const page of rows) {
      expect(page.reduce((sum, row) => sum + row.body!.length, 0)).to.be.below(10_000 + 1_100)
      listed.push(...page.map(row => row.id))
    }
    expect(listed).to.deep.equal(names)
  })

  it('reads no further than its reader', async () => {
    const world = new ReplicaWorld({ q: 4 })
    await filled(world, Array.from({ length: 4000 }, (_, i) => `doc${i}`))
    let pages = 0
    const counted = new Set(['a', 'b', 'c'].flatMap(node => [0, 1, 2, 3].map(index => world.store(node, index))))
    for (const replica of counted) {
      const scan = replica.scanDocuments.bind(replica)
      replica.scanDocuments = (...args) => (async function* () {
        for await (const page of scan(...args)) {
          pages++
          yield page
        }
      })()
    }
    const { rows } = await world.coordinator('a').listDocuments(world.db, everything, request())
    const reader = rows[Symbol.asyncIterator]()
    await reader.next()
    const ahead = pages
    await world.clock.advance(1000)
    expect([pages, ahead < 16]).to.deep.equal([ahead, true])
    await reader.return?.()
    expect(pages).to.equal(ahead)
  })
})
