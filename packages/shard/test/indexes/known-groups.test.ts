import { expect } from 'chai'
import fc from 'fast-check'
import type { IndexDefinition, ReducedGroup, ReduceIndexRequest } from '@sectional/core'
import { ManualClock, MemoryStorage, RealClock, Turns } from '@sectional/runtime'
import { IndexKeys, placeText } from '../../src/indexes/index-keys.ts'
import { encodeRow } from '../../src/indexes/index-records.ts'
import { reduceIndex } from '../../src/indexes/index-reduction.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { type KnownGroups, ReductionCache } from '../../src/indexes/reduction-cache.ts'
import type { RowReader } from '../../src/indexes/row-reader.ts'
import { RowList } from '../../src/indexes/row-list.ts'
import { RowTree } from '../../src/indexes/row-tree.ts'
import { buildSummaries } from '../../src/indexes/summary-build.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'concatenate', options: {} }
const keys = new IndexKeys(1)
const letters = ['a', 'b', 'c', 'd'] as const
const all: ReduceIndexRequest = { index: 'x', through: 0, ranges: [{}], descending: false, groupLevel: 1 }

/** Concatenates values, and counts the rows that it was given. */
class CountingIndexer implements Indexer {
  rows = 0
  failing = ''
  versionOf(): string { return '1' }
  async map() { return [] }
  groupOf(key: string, level: number): string { return key.slice(0, level) }
  async reduce(_definition: IndexDefinition, lists: Parameters<Indexer['reduce']>[1]) {
    this.rows += lists.flat().length
    return lists.map(rows => Buffer.concat(rows.map(({ value }) => value)))
  }
  async rereduce(_definition: IndexDefinition, lists: Parameters<Indexer['rereduce']>[1]) {
    return lists.map(values => Buffer.concat(values))
  }
  encodeGroup(_definition: IndexDefinition, _row: unknown, _level: unknown, value: Uint8Array) { return value }
  isFailure(_definition: IndexDefinition, group: Uint8Array): boolean {
    return this.failing !== '' && Buffer.from(group).includes(this.failing)
  }
}

/** Returns a reader of rows whose keys have two letters, and of which a few have the same key. */
async function open(count: number, indexer: Indexer, hasSummaries: boolean): Promise<RowReader> {
  const store = await new MemoryStorage().open('rows')
  await store.write(batch => {
    for (let at = 0; at < count; at++) {
      const key = letters[at % 4]! + letters[(at >> 2) % 4]!
      const place = placeText({ key, id: `d${at}`, number: 0 })
      batch.put(keys.row(place), encodeRow(place, Buffer.from(`${key}${at} `)))
    }
  })
  if (!hasSummaries) return new RowList(store, keys, () => {})
  const turns = new Turns(new RealClock())
  const height = await buildSummaries({ source: store, keys, definition, indexer }, turns, Infinity, (key, page) =>
    store.write(batch => batch.put(key, page)), () => {})
  return new RowTree(store, keys, height)
}

async function reduced(
  reader: RowReader, indexer: Indexer, request: ReduceIndexRequest, known: KnownGroups,
): Promise<readonly (readonly [range: number, group: string, value: string])[]> {
  const groups: ReducedGroup[] = []
  const pages = reduceIndex({ rows: () => reader }, definition, indexer, request, known, () => {})
  for await (const page of pages) groups.push(...page)
  return groups.map(({ range, group, value }) => [range, group, Buffer.from(value).toString()])
}

function groupsOf(level: ReduceIndexRequest['groupLevel']): KnownGroups {
  return new ReductionCache(new ManualClock()).groupsOf('1', level)
}

describe('groups that requests share', () => {
  const bound = fc.option(fc.record({
    key: fc.string({ unit: fc.constantFrom(...letters), maxLength: 2 }), inclusive: fc.boolean(),
  }), { nil: undefined })
  const range = fc.record({ lower: bound, upper: bound })
    .map(({ lower, upper }) => ({ ...(lower && { lower }), ...(upper && { upper }) }))
  const requests = fc.array(fc.record({
    ranges: fc.array(range, { minLength: 1, maxLength: 3 }), descending: fc.boolean(), skip: fc.nat(3),
    limit: fc.option(fc.nat(4), { nil: undefined }),
  }), { maxLength: 12 })

  it('are those that each request would read alone', async () => {
    await fc.assert(fc.asyncProperty(
      fc.integer({ min: 1, max: 400 }), fc.boolean(), fc.constantFrom(0, 1, 2, 'exact' as const), requests,
      async (count, hasSummaries, groupLevel, asked) => {
        const indexer = new CountingIndexer()
        const reader = await open(count, indexer, hasSummaries)
        const known = groupsOf(groupLevel)
        for (const { limit, ...rest } of asked) {
          const request = { ...all, ...rest, groupLevel, ...(limit !== undefined && { limit }) }
          const alone = await reduced(reader, indexer, request, groupsOf(groupLevel))
          expect(await reduced(reader, indexer, request, known)).to.deep.equal(alone)
        }
      },
    ), { numRuns: 100 })
  }).timeout(60_000)

  it('are not read again, but for those in which a range begins or ends', async () => {
    const indexer = new CountingIndexer()
    const reader = await open(64, indexer, true)
    const known = groupsOf(1)
    await reduced(reader, indexer, all, known)
    const rowsOf = async (request: Partial<ReduceIndexRequest>): Promise<number> => {
      indexer.rows = 0
      await reduced(reader, indexer, { ...all, ...request }, known)
      return indexer.rows
    }
    expect(await rowsOf({})).to.equal(0)
    expect(await rowsOf({ ranges: [{ lower: { key: 'bb', inclusive: true } }] })).to.equal(12)
    expect(await rowsOf({ ranges: [{ upper: { key: 'cb', inclusive: false } }] })).to.equal(4)
  })

  it('are read again when they describe a failure', async () => {
    const indexer = new CountingIndexer()
    const reader = await open(64, indexer, true)
    const known = groupsOf(1)
    indexer.failing = 'bc'
    await reduced(reader, indexer, all, known)
    indexer.rows = 0
    await reduced(reader, indexer, all, known)
    expect(indexer.rows).to.equal(16)
  })
})
