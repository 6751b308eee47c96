import { expect } from 'chai'
import fc from 'fast-check'
import { ApiError } from '@sectional/core'
import { scanView } from '../../src/views/view-scan.ts'
import type { ViewQuery } from '../../src/contracts/view-query.ts'
import { request } from '../replica-world.ts'
import { between, encoder, everything, IndexWorld, rowsOf, testRows } from './index-world.ts'
import type { TestDocument, TestRow } from './index-world.ts'

const documents: readonly TestDocument[] = Array.from({ length: 40 }, (_, i) => ({
  id: `d${String(i).padStart(2, '0')}`, keys: [i % 7, [i % 3, i % 5]].slice(0, 1 + i % 2), value: i,
}))
const all = rowsOf(documents)

async function filled(world: IndexWorld): Promise<IndexWorld> {
  await world.write(documents)
  return world
}

async function rowsVia(world: IndexWorld, node: string, query: Partial<ViewQuery> = {}): Promise<readonly TestRow[]> {
  const answer = await world.during(scanView(world.viewScope(node), world.db, { ...everything, ...query }, request()))
  const rows = await world.during(testRows(answer.rows))
  await answer.close()
  return rows
}

describe('a scan of a view', () => {
  it('returns for every option the same rows as one sorted array', async () => {
    const world = await filled(new IndexWorld({ q: 4, coordinator: { listPageRows: 7 } }))
    const scope = world.viewScope('b')
    const key = fc.constantFrom<unknown>(null, 0, 2, 3, 6, 9, [], [1], [1, 3], [1, {}], {})
    const options = fc.record({
      bounds: fc.array(fc.tuple(key, key), { maxLength: 3 }), descending: fc.boolean(), skip: fc.nat(12),
      limit: fc.option(fc.nat(12)),
    })
    await fc.assert(fc.asyncProperty(options, async ({ bounds, descending, skip, limit }) => {
      const order = descending ? all.toReversed() : all
      const expected = bounds.flatMap(([lower, upper]) => order.filter(row => isBetween(row, lower, upper)))
        .slice(skip, limit === null ? undefined : skip + limit)
      const ranges = bounds.map(([lower, upper]) => between(lower, upper))
      const answer = await scanView(scope, world.db, { ...everything, ranges, descending, skip, limit }, request())
      expect(await testRows(answer.rows)).to.deep.equal(expected)
      expect(answer.total).to.equal(all.length)
      const [first] = bounds
      const before = first === undefined ? 0
        : all.filter(row => descending ? isAfter(row, first[1]) : isBefore(row, first[0])).length
      expect(answer.offset).to.equal(Math.min(all.length, before + skip))
      await answer.close()
      expect(world.openScans).to.equal(0)
    }), { numRuns: 100 })
  })

  it('continues on another replica in the middle of the answer, without rows twice or missing', async () => {
    for (const q of [1, 3]) {
      const world = await filled(new IndexWorld({ q, nodes: ['a', 'b', 'c', 'out'], n: 3 }))
      world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
      world.faults.set('b', { kind: 'break-scan', afterPages: 1 })
      for (const descending of [false, true]) {
        const order = descending ? all.toReversed() : all
        for (const [skip, limit] of [[0, null], [5, 30], [11, 20]] as const) {
          world.calls.length = 0
          expect(await rowsVia(world, 'out', { descending, skip, limit }))
            .to.deep.equal(order.slice(skip, limit === null ? undefined : skip + limit))
          expect(new Set(world.calls.map(({ node }) => node))).to.include.keys('a', 'b')
        }
        const ranges = [between(3, 5), between(0, 1), between(4, 4)]
        const expected = [[3, 5], [0, 1], [4, 4]].flatMap(([lower, upper]) =>
          order.filter(row => isBetween(row, lower, upper)))
        expect(await rowsVia(world, 'out', { descending, ranges })).to.deep.equal(expected)
      }
      expect(world.openScans).to.equal(0)
    }
  })

  describe('whose replica fails in the middle', () => {
    const moved = { ...documents[39]!, keys: [-1] }

    /** Begins an answer of a, which fails behind its first rows. @param meanwhile runs when the answer has begun */
    async function interrupted(
      world: IndexWorld, query: Partial<ViewQuery>, meanwhile: () => Promise<void>,
    ): Promise<readonly TestRow[]> {
      const scope = world.viewScope('out')
      const answer = await world.during(scanView(scope, world.db, { ...everything, ...query }, request()))
      await meanwhile()
      world.faults.set('a', { kind: 'break-scan', afterPages: 0 })
      try {
        return await world.during(testRows(answer.rows))
      } finally {
        await answer.close()
      }
    }

    const begin = async (): Promise<IndexWorld> =>
      filled(new IndexWorld({ q: 1, nodes: ['a', 'b', 'out'], n: 2, coordinator: { listPageRows: 7 } }))

    it('never contains rows of two states', async () => {
      const world = await begin()
      await rowsVia(world, 'out')
      await expectError(interrupted(world, {}, () => world.write([moved])), 'service unavailable')
      expect(world.openScans).to.equal(0)
    })

    it('does not continue on a replica whose index has other rows already', async () => {
      const world = await begin()
      await rowsVia(world, 'out')
      await expectError(interrupted(world, {}, async () => {
        await world.write([moved])
        world.cut('out', 'a')
        await rowsVia(world, 'out')
        world.heal()
      }), 'service unavailable')
      expect(world.openScans).to.equal(0)
    })

    it('is completed by a replica whose index is behind', async () => {
      const world = await begin()
      expect(await interrupted(world, {}, async () => {})).to.deep.equal(all)
      expect(world.calls.some(({ node, verb }) => node === 'b' && verb === 'buildIndex')).to.equal(true)
    })

    it('is completed by an index that is as old as that of the failed replica', async () => {
      const world = await begin()
      for (const node of ['a', 'b']) {
        world.cut('out', node === 'a' ? 'b' : 'a')
        await rowsVia(world, 'out')
        world.heal()
      }
      await world.write([moved])
      world.calls.length = 0
      expect(await interrupted(world, { update: false }, async () => {})).to.deep.equal(all)
      expect(world.calls.map(({ verb }) => verb)).not.to.include('buildIndex')
    })
  })

  it('fails when no replica of a shard is left, before the rows and in the middle of them', async () => {
    const world = await filled(new IndexWorld({ q: 2, nodes: ['a', 'b', 'out'], n: 2 }))
    for (const node of ['a', 'b']) world.faults.set(node, { kind: 'break-scan', afterPages: 1 })
    const answer = await scanView(world.viewScope('out'), world.db, { ...everything, limit: null }, request())
    world.isolate('out')
    await expectError(testRows(answer.rows), 'service unavailable')
    await answer.close()
    await expectError(scanView(world.viewScope('out'), world.db, everything, request()), 'service unavailable')
    expect(world.openScans).to.equal(0)
  })

  it('asks another replica when one is silent', async () => {
    const world = await filled(new IndexWorld({ q: 2, nodes: ['a', 'b', 'c', 'out'], n: 3 }))
    world.faults.set('a', { kind: 'hang' })
    expect(await rowsVia(world, 'out')).to.deep.equal(all)
  })

  it('waits longer for a slow page when no other replica can take over', async () => {
    for (const n of [1, 2]) {
      const world = await filled(new IndexWorld({ q: 1, nodes: ['a', 'b', 'out'], n }))
      world.pageRows = 100
      await rowsVia(world, 'out')
      for (const node of ['a', 'b']) world.faults.set(node, { kind: 'delay', ms: 15_000, verbs: ['scanIndex'] })
      expect(await rowsVia(world, 'out', { timeoutMs: 60_000 })).to.deep.equal(all)
    }
  })

  it('reads pages only as its rows are read, and releases the replicas when it is closed early', async () => {
    const world = await filled(new IndexWorld({ q: 2, coordinator: { listPageRows: 2 } }))
    await rowsVia(world, 'a')
    world.pagesSent = 0
    const answer = await scanView(world.viewScope('a'), world.db, everything, request())
    const rows = answer.rows[Symbol.asyncIterator]()
    await rows.next()
    expect(world.pagesSent).to.be.at.most(4)
    expect(world.openScans).to.equal(2)
    await answer.close()
    expect(world.openScans).to.equal(0)
  })

  it('releases the replicas of an answer that is never read', async () => {
    const world = await filled(new IndexWorld({ q: 4 }))
    const answer = await scanView(world.viewScope('a'), world.db, { ...everything, skip: 1, limit: 2 }, request())
    expect(world.openScans).to.equal(4)
    await answer.close()
    expect(world.openScans).to.equal(0)
  })

  it('asks each shard for no more rows than the answer can need', async () => {
    const world = await filled(new IndexWorld({ q: 2 }))
    await rowsVia(world, 'a')
    world.pageRows = 1
    world.pagesSent = 0
    await rowsVia(world, 'a', { skip: 2, limit: 1 })
    // A page with the head and, of each shard, at most three rows.
    expect(world.pagesSent).to.be.at.most(2 * (1 + 3))
    world.pagesSent = 0
    expect(await rowsVia(world, 'a', { limit: 0 })).to.deep.equal([])
    expect(world.pagesSent).to.equal(2)
  })

  it('reads only the shard of a partition', async () => {
    const world = new IndexWorld({ q: 4, partitioned: true })
    await world.write(['p:1', 'p:2', 'q:1', 'r:1'].map((id, value) => ({ id, keys: [id], value })))
    const ranges = [between('p:', 'p:\ufff0')]
    world.calls.length = 0
    const rows = await rowsVia(world, 'a', { ranges, partition: 'p' })
    expect(rows.map(({ id }) => id)).to.deep.equal(['p:1', 'p:2'])
    expect(world.calls.filter(({ verb }) => verb === 'buildIndex')).to.have.length(1)
  })
})

function isBetween(row: TestRow, lower: unknown, upper: unknown): boolean {
  return !isBefore(row, lower) && !isAfter(row, upper)
}

function isBefore({ key }: TestRow, bound: unknown): boolean {
  return encoder.encode(key) < encoder.encode(bound)
}

function isAfter({ key }: TestRow, bound: unknown): boolean {
  return encoder.encode(key) > encoder.encode(bound)
}

async function expectError(work: Promise<unknown>, error: string): Promise<void> {
  const failure = await work.then(() => undefined, (reason: unknown) => reason)
  expect(failure).to.be.instanceOf(ApiError).with.property('error', error)
}
