import { expect } from 'chai'
import fc from 'fast-check'
import { ReplicaError } from '@sectional/core'
import { ManualClock } from '@sectional/runtime'
import type { ShardPlace } from '../../src/replicas/replica-access.ts'
import { UnconfirmedWrites } from '../../src/replicas/unconfirmed-writes.ts'
import type { CoordinatorScope } from '../../src/shard-calls/coordinator-scope.ts'
import { mergeLists, mergeRows } from '../../src/shard-calls/row-merge.ts'
import { scanShard } from '../../src/shard-calls/shard-scan.ts'
import type { ShardScan } from '../../src/shard-calls/shard-scan.ts'
import { request } from '../replica-world.ts'

/** A row like that of an index: ordered by key, then by document id. */
interface KeyedRow { readonly key: Uint8Array; readonly id: string; readonly value: number }

const byKey = (a: KeyedRow, b: KeyedRow): number =>
  Buffer.compare(a.key, b.key) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

async function collect<Row>(pages: AsyncIterable<readonly Row[]>): Promise<(readonly Row[])[]> {
  const all: (readonly Row[])[] = []
  for await (const page of pages) all.push(page)
  return all
}

async function* inPages<Row>(rows: readonly Row[], count: number): AsyncGenerator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += count) yield rows.slice(at, at + count)
}

const keyedRow: fc.Arbitrary<KeyedRow> = fc.record({
  key: fc.uint8Array({ maxLength: 2 }), id: fc.constantFrom('a', 'b', 'c'), value: fc.nat(5),
})

describe('rows in an order of their own', () => {
  it('merge as one sorted array, in pages of bounded rows and bytes', () => fc.assert(fc.asyncProperty(
    fc.array(fc.array(keyedRow, { maxLength: 12, size: 'max' }), { maxLength: 4 }), fc.nat(6), fc.option(fc.nat(20)),
    fc.boolean(),
    async (sources, skip, limit, descending) => {
      const compare = descending ? (a: KeyedRow, b: KeyedRow) => byKey(b, a) : byKey
      const sorted = sources.map(rows => rows.toSorted(compare))
      const options = { compare, bytesOf: (row: KeyedRow) => row.value, skip, limit, pageRows: 4, pageBytes: 8 }
      const pages = await collect(mergeRows(sorted.map(rows => inPages(rows, 3)), options))
      const expected = sources.flat().toSorted(compare).slice(skip, limit === null ? undefined : skip + limit)
      const names = (rows: readonly KeyedRow[]): string[] =>
        rows.map(({ key, id }) => `${Buffer.from(key).toString('hex')} ${id}`)
      expect(names(pages.flat())).to.deep.equal(names(expected))
      expect(names(mergeLists(sorted, options))).to.deep.equal(names(expected))
      for (const page of pages) {
        expect(page.length).to.be.within(1, 4)
        expect(page.slice(0, -1).reduce((sum, row) => sum + row.value, 0)).to.be.below(8)
      }
    },
  )))

  it('are read on behind the last row, where its order says, when a replica fails', async () => {
    const scope = {
      options: { scanPageTimeoutMs: 1000 }, unconfirmed: new UnconfirmedWrites(() => 0),
      runtime: { clock: new ManualClock() },
      access: { readers: () => ['a', 'b', 'c'].map(node => ({ node, local: true })) }, background: { track() {} },
    } as unknown as CoordinatorScope
    const place = { id: { incarnation: 'i', range: { begin: 0, end: 1 } } } as unknown as ShardPlace
    const rows = Array.from({ length: 10 }, (_, index) => ({ rank: 10 - index }))
    const asked: (readonly [node: string, from: number | undefined, limit: number | undefined])[] = []
    const scan: ShardScan<{ rank: number }, number> = {
      start: 9, limit: 6, behind: ({ rank }) => rank - 1,
      open: async function* ({ node }, { start, limit }) {
        asked.push([node, start, limit])
        const left = rows.filter(({ rank }) => rank <= start!).slice(0, limit)
        yield left.slice(0, 2)
        if (node !== 'c') throw new ReplicaError('storage', 'a broken disk')
        yield left.slice(2)
      },
    }
    const pages = await collect(scanShard(scope, place, scan, request()))
    expect(pages.flat().map(({ rank }) => rank)).to.deep.equal([9, 8, 7, 6, 5, 4])
    expect(asked).to.deep.equal([['a', 9, 6], ['b', 7, 4], ['a', 5, 2]])
  })
})
