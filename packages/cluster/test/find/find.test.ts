import { expect } from 'chai'
import fc from 'fast-check'
import { ApiError, documentHash, findRange } from '@sectional/core'
import type { FindQuery } from '../../src/contracts/find-query.ts'
import { request } from '../replica-world.ts'
import { collect } from '../views/index-world.ts'
import { FindWorld, indexSource, intersected, naiveFind } from './find-world.ts'
import type { StoredDocument } from './find-world.ts'

const documents: readonly StoredDocument[] = Array.from({ length: 60 }, (_, i) => ({
  _id: `d${String(i).padStart(2, '0')}`, group: i % 4, ...(i % 5 > 0 && { rank: (i * 7) % 11 }), note: `note ${i}`,
}))
const byId = ['_id']

async function filled(options: ConstructorParameters<typeof FindWorld>[0] = {}): Promise<FindWorld> {
  const world = new FindWorld({ q: 3, ...options })
  await world.put(documents)
  return world
}

function verbs(world: FindWorld): readonly string[] {
  return world.calls.map(({ node, verb }) => `${verb} ${node}`)
}

async function expectError(work: Promise<unknown>, error: string): Promise<ApiError> {
  const failure = await work.then(() => undefined, (reason: unknown) => reason)
  expect(failure).to.be.instanceOf(ApiError).with.property('error', error)
  return failure as ApiError
}

describe('a query by selector', () => {
  it('returns for every option the same documents as a filter and a sort of one array', async () => {
    // The first node has all shards, the last one has not.
    const worlds = [await filled({ q: 4, coordinator: { listPageRows: 7 } }), await filled({ q: 4, n: 1 })]
    const selectors = fc.constantFrom(
      {}, { group: 2 }, { rank: { $gt: 3 } }, { $or: [{ group: 1 }, { rank: 5 }] }, { rank: { $exists: false } },
      { note: 'note 17' }, { group: 9 },
    )
    const options = fc.record({
      selector: selectors, world: fc.constantFrom(...worlds),
      columns: fc.constantFrom([], ['group'], ['rank'], ['group', 'rank']), descending: fc.boolean(),
      skip: fc.nat(12), limit: fc.option(fc.nat(12)),
    })
    await fc.assert(fc.asyncProperty(options, async ({ selector, world, columns, ...rest }) => {
      const { descending, skip, limit } = rest
      const source: FindQuery['source'] = columns.length === 0 ? { kind: 'documents' } : indexSource(columns)
      const query = { selector: JSON.stringify(selector), source, descending, skip, limit }
      const all = naiveFind(documents, selector, columns.length === 0 ? byId : columns, descending)
      const expected = limit === 0 ? [] : all.slice(skip, limit === null ? undefined : skip + limit)
      const answer = await world.find('b', query)
      expect(answer.ids).to.deep.equal(expected)
      const taken = limit === 0 ? [] : all.slice(0, limit === null ? undefined : skip + limit)
      expect(answer.lastPosition()?.id).to.equal(taken.at(-1))
      expect(world.openScans).to.equal(0)
    }), { numRuns: 100 })
  })


  it('finds matches behind many rows of a local shard that do not match', async () => {
    const many = Array.from({ length: 80 }, (_, i) => ({
      _id: `d${String(i).padStart(2, '0')}`, group: 1, rank: i, wanted: i >= 50,
    }))
    const world = new FindWorld({ q: 1 })
    await world.put(many)
    const source = indexSource(['group', 'rank'], [1], [1, {}])
    const found = await world.find('a', { selector: '{"group":1,"wanted":true}', source, limit: 5 })
    expect(found.ids).to.deep.equal(['d50', 'd51', 'd52', 'd53', 'd54'])
  })

  it('returns the first match although each local shard has more rows than are read at first', async () => {
    const world = new FindWorld({ q: 2 })
    const ranges = world.db.shards.map(({ range }) => range)
    const ids = Array.from({ length: 200 }, (_, i) => `d${i}`)
    const [late, early] = [0, 1].map(at => ids.filter(id => findRange(ranges, documentHash(id, false)) === at))
    await world.put([
      ...late!.map((_id, i) => ({ _id, rank: 1000 + i, wanted: true })),
      ...early!.map((_id, i) => ({ _id, rank: i, wanted: i >= 33 })),
    ])
    const query = { selector: '{"wanted":true}', source: indexSource(['rank']), limit: 1 }
    expect((await world.find('a', query)).ids).to.deep.equal([early![33]])
  })

  it('by two indexes returns the same documents, in the order of the first one, and reads fewer', async () => {
    const worlds = [await filled(), await filled({ nodes: ['a', 'b', 'c', 'out'], n: 3 })]
    const options = fc.record({
      world: fc.constantFrom(...worlds), descending: fc.boolean(), skip: fc.nat(5), limit: fc.option(fc.nat(12)),
      group: fc.nat(4), selector: fc.constantFrom({}, { rank: { $gt: 3 } }), r: fc.constantFrom(1, 2),
      isBuilt: fc.boolean(),
    })
    await fc.assert(fc.asyncProperty(options, async ({ world, group, selector, isBuilt, ...rest }) => {
      const via = world.nodes.at(-1)!
      const second = isBuilt ? ['group'] : ['group', `missing${group}`]
      if (isBuilt) await world.find(via, { source: indexSource(second) })
      const source = intersected(indexSource(['rank']), second, [group])
      const match = { ...selector, group }
      const answer = await world.find(via, { selector: JSON.stringify(match), source, ...rest })
      const all = naiveFind(documents, match, ['rank'], rest.descending)
      const { skip, limit } = rest
      expect(answer.ids).to.deep.equal(limit === 0 ? [] : all.slice(skip, limit === null ? undefined : skip + limit))
      expect(world.openScans).to.equal(0)
    }), { numRuns: 60 })
    const [world] = worlds
    const match = JSON.stringify({ group: 2 })
    await world!.find('a', { source: indexSource(['group']) })
    const read = await world!.find('a', { selector: match, source: intersected(indexSource(['rank']), ['group'], [2]) })
    expect(read.statistics()).to.include({ keysExamined: 48, documentsExamined: read.ids.length })
  })

  it('continues behind the last place of a page, in both directions', async () => {
    const world = await filled()
    for (const [source, columns] of [[{ kind: 'documents' }, byId], [indexSource(['group']), ['group']]] as const) {
      for (const descending of [false, true]) {
        const ids: string[] = []
        let after: FindQuery['after']
        for (;;) {
          const page = await world.find('a', { source, descending, limit: 7, ...(after && { after }) })
          if (page.ids.length === 0) break
          ids.push(...page.ids)
          after = page.lastPosition()
        }
        expect(ids).to.deep.equal(naiveFind(documents, {}, columns, descending))
      }
    }
  })

  it('reports what replicas have examined, and reads no document for a covering index', async () => {
    const world = await filled()
    world.pageRows = 100
    const selector = JSON.stringify({ group: 2 })
    const [scan, index, covered] = await Promise.all([
      world.find('a', { selector }), world.find('a', { selector, source: indexSource(['group'], [2], [2, {}]) }),
      world.find('a', { selector, source: indexSource(['group'], [2], [2, {}]), documents: 'none' }),
    ])
    expect(scan.statistics()).to.include({ keysExamined: 60, documentsExamined: 60 })
    expect(index.statistics()).to.include({ keysExamined: 15, documentsExamined: 15 })
    expect(covered.statistics()).to.include({ keysExamined: 15, documentsExamined: 0, matchesFound: 15 })
    expect(covered.ids).to.deep.equal(index.ids)
    expect(covered.matches[0]).not.to.have.property('body')
  })

  it('asks each shard for as many matches as the answer can need', async () => {
    const world = await filled()
    world.pageRows = 100
    await world.find('a', { source: indexSource(['group']) })
    const { statistics } = await world.find('a', { source: indexSource(['group']), skip: 1, limit: 2 })
    expect(statistics().documentsExamined).to.be.at.most(3 * world.db.shards.length)
  })

  it('asks only the shard of the partition', async () => {
    const world = new FindWorld({ q: 4, partitioned: true })
    await world.put(['a', 'b', 'c', 'd', 'e'].flatMap(partition =>
      [1, 2, 3].map(number => ({ _id: `${partition}:${number}`, number }))))
    world.calls.length = 0
    const { ids } = await world.find('a', {
      partition: 'c',
      source: { kind: 'documents', start: { id: 'c:', inclusive: true }, end: { id: 'c;', inclusive: false } },
    })
    expect(ids).to.deep.equal(['c:1', 'c:2', 'c:3'])
    expect(verbs(world).filter(call => call.startsWith('find'))).to.have.lengthOf(1)
  })

  it('reads one document for one id', async () => {
    const world = await filled({ nodes: ['a', 'b', 'c', 'out'], n: 3 })
    const bound = { id: 'd05', inclusive: true }
    const query = { source: { kind: 'documents', start: bound, end: bound }, selector: '{"_id":"d05"}' } as const
    world.calls.length = 0
    const found = await world.find('out', query)
    expect(found.ids).to.deep.equal(['d05'])
    expect(verbs(world)).to.have.lengthOf(1).and.to.match(/^openDocument/)
    const readOne = { keysExamined: 1, documentsExamined: 1, quorumDocumentsExamined: 0, matchesFound: 1 }
    expect(found.statistics()).to.deep.equal(readOne)
    expect(found.lastPosition()?.id).to.equal('d05')
    const { statistics } = await world.find('out', { ...query, r: 2 })
    expect(statistics()).to.deep.equal({ ...readOne, documentsExamined: 0, quorumDocumentsExamined: 1 })
    for (const none of [
      { ...query, selector: '{"_id":"d05","group":9}' }, { ...query, after: found.lastPosition()! },
      { ...query, skip: 1 }, { ...query, limit: 0 },
    ]) expect((await world.find('out', none)).ids).to.deep.equal([])
    await world.put([{ _id: 'd05', _deleted: true }])
    expect((await world.find('out', query)).ids).to.deep.equal([])
  })

  it('ends its calls when it is closed before its end', async () => {
    const world = await filled()
    for (const source of [{ kind: 'documents' }, indexSource(['group'])] as const) {
      const answer = await world.open('a', { source })
      const matches = answer.matches[Symbol.asyncIterator]()
      await world.during(matches.next())
      await matches.return?.()
      await answer.close()
      await world.clock.advance(0)
      expect(world.openScans).to.equal(0)
    }
  })

  it('returns the leaves of documents with conflicts', async () => {
    const world = await filled()
    const path = { start: 1, ids: ['f'.repeat(32)] }
    const write = { id: 'd03', path, deleted: false, body: Buffer.from('{"group":3}') }
    await world.during(world.coordinator('a').storeRevisions(world.db, [write], { w: 3 }, request()))
    const { matches } = await world.find('a', { selector: '{"_id":"d03"}', documents: 'leaves' })
    expect(matches.map(({ leaves }) => leaves?.length)).to.deep.equal([2])
  })
})

describe('a query by selector whose replica', () => {
  const sources = [{ kind: 'documents' }, indexSource(['group'])] as const

  it('fails in the middle of the answer continues on another one, without documents twice or missing', async () => {
    const world = await filled({ nodes: ['a', 'b', 'c', 'out'], n: 3 })
    for (const node of ['a', 'b', 'c']) {
      // Every replica has the index, so that any of them can continue.
      await world.find(node, { source: indexSource(['group']) })
    }
    world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
    world.faults.set('b', { kind: 'break-scan', afterPages: 1 })
    for (const source of sources) {
      for (const descending of [false, true]) {
        const columns = source.kind === 'documents' ? byId : ['group']
        world.calls.length = 0
        for (const selector of [{}, { group: { $gt: 1 } }, { note: 'note 41' }]) {
          const { ids } = await world.find('out', { selector: JSON.stringify(selector), source, descending })
          expect(ids).to.deep.equal(naiveFind(documents, selector, columns, descending))
        }
        expect(new Set(world.calls.map(({ node }) => node))).to.include.keys('a', 'b')
        const { ids } = await world.find('out', { source, descending, skip: 5, limit: 30 })
        expect(ids).to.deep.equal(naiveFind(documents, {}, columns, descending).slice(5, 35))
      }
    }
    expect(world.openScans).to.equal(0)
  })

  it('fails behind matches that are far apart continues where it has ended', async () => {
    const world = new FindWorld({ q: 1, nodes: ['a', 'b', 'out'], n: 2 })
    world.pageRows = 2
    const many = Array.from({ length: 2_500 }, (_, i) => ({ _id: `d${10_000 + i}`, group: i }))
    await world.put(many)
    const selector = '{"group":{"$in":[3,1700,2499]}}'
    for (const source of sources) {
      for (const node of ['a', 'b']) await world.find(node, { source, limit: 1 })
      world.faults.set('a', { kind: 'break-scan', afterPages: 1 })
      const { ids, statistics } = await world.find('out', { selector, source })
      expect(ids).to.deep.equal(['d10003', 'd11700', 'd12499'])
      // Without an index, the first page of a ends with the report of 1,000 keys.
      expect(statistics().keysExamined).to.be.within(2_400, 2_500)
    }
  })

  it('fails in the middle never returns rows of two states of an index', async () => {
    const world = await filled({ q: 1, nodes: ['a', 'b', 'out'], n: 2, coordinator: { listPageRows: 7 } })
    const answer = await world.open('out', { source: indexSource(['group']) })
    await world.put([{ _id: 'd59', group: -1 }])
    world.faults.set('a', { kind: 'break-scan', afterPages: 0 })
    await expectError(world.during(collect(answer.matches)), 'service unavailable')
    await answer.close()
  })

  it('is silent is replaced by another one', async () => {
    const world = await filled({ nodes: ['a', 'b', 'out'], n: 2 })
    for (const source of sources) {
      await world.find('out', { source })
      world.faults.set('a', { kind: 'hang' })
      const began = world.clock.monotonic()
      expect((await world.find('out', { source })).ids).to.have.lengthOf(60)
      expect(world.clock.monotonic() - began).to.be.below(2_500)
      world.faults.clear()
    }
  })

  it('cannot match the selector in time is the only one that is asked', async () => {
    const world = await filled({ q: 1, nodes: ['a', 'b', 'out'], n: 2 })
    for (const source of sources) {
      await world.find('out', { source })
      world.faults.set('a', { kind: 'fail', code: 'exhausted', verbs: ['find'] })
      world.calls.length = 0
      const { cause } = await expectError(world.find('out', { source }), 'timeout')
      expect(cause).to.have.property('code', 'exhausted')
      expect(verbs(world)).to.deep.equal(['find a'])
      world.faults.clear()
    }
  })

  it('is the last one that fails reports that', async () => {
    const world = await filled({ nodes: ['a', 'out'], n: 1 })
    for (const source of sources) {
      await world.find('out', { source })
      world.cut('out', 'a')
      await expectError(world.find('out', { source }), 'service unavailable')
      world.heal()
    }
  })
})

describe('the freshness of a query by selector', () => {
  it('contains the writes that the same node has acknowledged, although replicas missed them', async () => {
    for (const source of [{ kind: 'documents' }, indexSource(['group'])] as const) {
      const world = await filled({ nodes: ['a', 'b', 'c', 'out'], n: 3, q: 1 })
      await world.find('out', { source })
      world.cut('out', 'a')
      await world.put([{ _id: 'new', group: 1 }], 'out', 2)
      world.heal()
      expect((await world.find('out', { source })).ids).to.include('new')
    }
  })

  it('with update=false is that of the index, and builds nothing', async () => {
    const world = await filled()
    const source = indexSource(['group'])
    expect((await world.find('a', { source, update: false })).ids).to.deep.equal([])
    await world.find('a', { source })
    await world.put([{ _id: 'new', group: 1 }])
    expect((await world.find('a', { source, update: false })).ids).not.to.include('new')
    expect((await world.find('a', { source })).ids).to.include('new')
  })
})

describe('a query by selector with r', () => {
  it('tests the selector on what r replicas know together', async () => {
    for (const source of [{ kind: 'documents' }, indexSource(['group'], [1], [77, {}])] as const) {
      const world = await filled({ n: 3, q: 1 })
      world.isolate('a')
      await world.put([{ _id: 'd01', group: 77 }], 'b', 2)
      world.heal()
      const query = { selector: '{"group":1}', source }
      expect((await world.find('a', query)).ids).to.include('d01')
      const quorum = await world.find('a', { ...query, r: 3 })
      expect(quorum.ids).to.have.lengthOf(14).and.not.to.include('d01')
      const { documentsExamined, quorumDocumentsExamined } = quorum.statistics()
      expect(documentsExamined).to.equal(0)
      expect(quorum.statistics().matchesFound).to.equal(14)
      expect(quorumDocumentsExamined).to.be.at.least(15)
    }
  })
})

describe('a query by selector that is sorted in memory', () => {
  const sort = { fields: [['rank']], rowsMax: 100 }

  it('has the order of an index on the fields, in pages of any size', async () => {
    const world = await filled()
    for (const descending of [false, true]) {
      const expected = naiveFind(documents, { group: { $lt: 3 } }, ['rank'], descending)
      const query = { selector: '{"group":{"$lt":3}}', sort, descending }
      expect((await world.find('a', query)).ids).to.deep.equal(expected)
      expect((await world.find('a', { ...query, skip: 3, limit: 10 })).ids).to.deep.equal(expected.slice(3, 13))
      const first = await world.find('a', { ...query, limit: 10 })
      const { ids } = await world.find('a', { ...query, after: first.lastPosition()!, limit: 10 })
      expect(ids).to.deep.equal(expected.slice(10, 20))
      expect((await world.find('a', { ...query, source: indexSource(['group']) })).ids).to.deep.equal(expected)
    }
  })

  it('is refused when it would have to hold more documents than it may', async () => {
    const world = await filled()
    const few = { fields: [['rank']], rowsMax: 20 }
    expect((await world.find('a', { sort: few, skip: 8, limit: 12 })).ids).to.have.lengthOf(12)
    for (const [skip, limit] of [[9, 12], [0, null]] as const) {
      const { reason } = await expectError(world.find('a', { sort: few, skip, limit }), 'too_large')
      expect(reason).to.include('mango/sort_rows_max').and.to.include('20').and.to.include('create an index')
    }
    expect(world.openScans).to.equal(0)
  })
})
