import assert from 'node:assert/strict'
import { indexId, type IndexRow, type RowBound, type RowRange } from '../contracts/index-replica.ts'
import {
  assertFails, byKeys, context, folded, type IndexFixture, rowText,
} from './index-fixture.ts'
import { randomNumbers } from './random-numbers.ts'

/** Ascending in the order of bytes. In the order of UTF-16 units the emoji would come before the other one. */
const ids = ['a', 'b', '\uff5e', '😀']
/** Ascending. The documents emit them in another order, and some of them twice. */
const keys = ['\u0000', 'a', 'a\u0000', 'a\u00ff', 'b', '\u0080', '\u00ff\u00ff']
const names = ({ rows }: { readonly rows: readonly IndexRow[] }): string[] =>
  rows.map(({ range, key, id, number }) => `${range}:${key}/${id}/${number}`)

function at(key: string, inclusive: boolean, id?: string): RowBound {
  return { key, inclusive, ...(id !== undefined && { id }) }
}

function randomRange(random: (below: number) => number): RowRange {
  const bound = (): RowBound => at(keys[random(keys.length)]!, random(2) > 0, ids[random(2 * ids.length)])
  return { ...(random(4) > 0 && { lower: bound() }), ...(random(4) > 0 && { upper: bound() }) }
}

export function scanCases(fixture: IndexFixture): void {
  const writeAll = async (): Promise<void> => {
    for (const [value, id] of ids.toReversed().entries()) {
      await fixture.write(id, { keys: [...keys.toReversed(), 'a', 'b'], value })
    }
    await fixture.build()
  }
  const pair = (lower: RowBound, upper: RowBound): RowRange => ({ lower, upper })

  describe('a scan', () => {
    it('lists rows in the order of keys, documents and numbers, both ways', async () => {
      await writeAll()
      const listed = await fixture.scan()
      assert.deepEqual(listed.rows.map(({ key }) => key), keys.flatMap(key =>
        new Array<string>(ids.length * (key === 'a' || key === 'b' ? 2 : 1)).fill(key)))
      assert.deepEqual(names(await fixture.scan({ ranges: [pair(at('a', true), at('a', true))] })), [
        '0:a/a/5', '0:a/a/7', '0:a/b/5', '0:a/b/7', '0:a/\uff5e/5', '0:a/\uff5e/7', '0:a/😀/5', '0:a/😀/7',
      ])
      assert.deepEqual((await fixture.scan({ descending: true })).rows, listed.rows.toReversed())
      assert.equal(listed.head.rowCount, listed.rows.length)
    })

    it('honours bounds by key and by document', async () => {
      for (const id of ['x', 'y', 'z']) await fixture.write(id, { keys: ['a', 'b', 'c'], value: 1 })
      await fixture.build()
      const scan = async (range: RowRange): Promise<string> =>
        (await fixture.scan({ ranges: [range] })).rows.map(({ key, id }) => key + id).join(' ')
      assert.equal(await scan(pair(at('b', true), at('b', true))), 'bx by bz')
      assert.equal(await scan(pair(at('a', false), at('c', false))), 'bx by bz')
      assert.equal(await scan(pair(at('a', true, 'z'), at('b', true, 'x'))), 'az bx')
      assert.equal(await scan(pair(at('a', false, 'y'), at('b', false, 'y'))), 'az bx')
      assert.equal(await scan({ lower: at('bb', true) }), 'cx cy cz')
      assert.equal(await scan({ upper: at('aa', false) }), 'ax ay az')
      assert.equal(await scan(pair(at('c', true), at('a', true))), '')
    })

    it('continues strictly behind each of its rows, both ways and in several ranges', async () => {
      await writeAll()
      const onlyB = pair(at('b', true), at('b', true))
      const ranges = [onlyB, {}, onlyB, { lower: at('c', true) }]
      for (const descending of [false, true]) {
        const all = (await fixture.scan({ ranges, descending })).rows
        assert.equal(all.length, 8 + 36 + 8 + 8)
        for (const [i, after] of all.entries()) {
          assert.deepEqual((await fixture.scan({ ranges, descending, after })).rows, all.slice(i + 1))
        }
        assert.deepEqual((await fixture.scan({ ranges, descending, after: all[9]!, limit: 3 })).rows, all.slice(10, 13))
        assert.deepEqual((await fixture.scan({ ranges, descending, skip: 5, limit: 7 })).rows, all.slice(5, 12))
      }
    })

    it('lists no rows for a limit of 0 or without ranges, and counts them nevertheless', async () => {
      await writeAll()
      const none = await fixture.scan({ limit: 0 })
      assert.deepEqual([none.rows.length, none.head.rowCount, none.head.rowsBefore], [0, 36, 0])
      assert.deepEqual((await fixture.scan({ ranges: [] })).rows, [])
    })

    it('counts the rows before its first range, in its direction', async () => {
      await writeAll()
      const before = async (range: RowRange, descending = false): Promise<number> =>
        (await fixture.scan({ ranges: [range, {}], descending, skip: 1, limit: 1 })).head.rowsBefore
      assert.equal(await before({}), 0)
      assert.equal(await before({ lower: at('a', true) }), 4)
      assert.equal(await before({ lower: at('a', false) }), 12)
      assert.equal(await before({ lower: at('a', true, 'b') }), 6)
      assert.equal(await before(pair(at('aa', true), at('aa', true))), 16)
      assert.equal(await before({ upper: at('b', true) }, true), 8)
      assert.equal(await before({ lower: at('b', true), upper: at('b', false) }, true), 16)
    })

    it('of a random range equals a filter of all rows', async () => {
      await writeAll()
      const { rows } = await fixture.scan()
      const random = randomNumbers(3)
      for (let round = 0; round < 100; round++) {
        const range = randomRange(random)
        const { lower, upper } = range
        const order = (row: IndexRow, bound: RowBound): number =>
          Buffer.compare(Buffer.from(row.key, 'latin1'), Buffer.from(bound.key, 'latin1'))
          || (bound.id === undefined ? 0 : Buffer.compare(Buffer.from(row.id), Buffer.from(bound.id)))
        const expected = rows.filter(row =>
          (!lower || order(row, lower) >= (lower.inclusive ? 0 : 1))
          && (!upper || order(row, upper) <= (upper.inclusive ? 0 : -1)))
        const { rows: found } = await fixture.scan({ ranges: [range] })
        assert.deepEqual(found.map(rowText), expected.map(rowText))
      }
    })

    it('is of one state of the index, also when builds and drops go on', async () => {
      for (let i = 0; i < 250; i++) await fixture.write(`doc${i}`, { keys: ['k'], value: i })
      await fixture.build()
      const request = { index: indexId(byKeys), through: 'newest' as const, ranges: [{}], descending: false }
      let rows = -1
      for await (const page of fixture.indexes.scanIndex(request, context)) {
        if (rows === -1) {
          for (let i = 0; i < 250; i++) await fixture.write(`doc${i}`, null)
          assert.equal((await fixture.build()).rowCount, 0)
          await fixture.indexes.dropIndexes({ except: [] }, context)
        }
        rows += page.length
      }
      assert.equal(rows, 250)
    })

    it('is cancelled by its signal, also between pages', async () => {
      for (let i = 0; i < 5000; i++) await fixture.write(`doc${i}`, { keys: ['k'], value: i })
      await fixture.build()
      await assertFails(fixture.scan({}, { ...context, signal: AbortSignal.abort() }), 'cancelled')
      const controller = new AbortController()
      const request = { index: indexId(byKeys), through: 0, ranges: [{}], descending: false }
      await assertFails((async () => {
        for await (const _page of fixture.indexes.scanIndex(request, { ...context, signal: controller.signal })) {
          controller.abort()
        }
      })(), 'cancelled')
    })
  })
}

export function reductionCases(fixture: IndexFixture): void {
  describe('a reduction', () => {
    beforeEach(async () => {
      for (const [value, id] of ids.entries()) await fixture.write(id, { keys: [...keys, 'a'], value: value + 1 })
      await fixture.build()
    })

    it('equals a fold over the rows of each group, for random ranges', async () => {
      const random = randomNumbers(5)
      for (let round = 0; round < 60; round++) {
        const ranges = Array.from({ length: 1 + random(3) }, () => randomRange(random))
        const descending = random(2) > 0
        const groupLevel = ([0, 1, 'exact'] as const)[random(3)]!
        const { rows } = await fixture.scan({ ranges, descending })
        const groups = Map.groupBy(rows, ({ range, key }) =>
          JSON.stringify([range, groupLevel === 'exact' ? key : key.slice(0, groupLevel)]))
        const expected = [...groups].map(([name, members]) =>
          [...JSON.parse(name) as [number, string], String(folded(descending ? members.toReversed() : members))])
        const found = await fixture.reduce({ ranges, descending, groupLevel })
        assert.deepEqual(found.map(({ range, group, value }) => [range, group, String(Buffer.from(value))]), expected)
      }
    })

    it('continues strictly behind each of its groups, both ways', async () => {
      const ranges = [{ upper: at('b', true) }, {}]
      for (const descending of [false, true]) {
        const all = await fixture.reduce({ ranges, descending, groupLevel: 1 })
        assert.equal(all.length, 3 + 5)
        for (const [i, after] of all.entries()) {
          assert.deepEqual(await fixture.reduce({ ranges, descending, groupLevel: 1, after }), all.slice(i + 1))
        }
        assert.deepEqual(
          await fixture.reduce({ ranges, descending, groupLevel: 1, skip: 2, limit: 3 }), all.slice(2, 5),
        )
      }
    })

    it('is refused for a definition without a reduce function', async () => {
      const definition = { ...byKeys, reduce: null }
      await fixture.build(definition)
      await assertFails(fixture.reduce({ index: indexId(definition), groupLevel: 0 }), 'protocol')
    })

    it('is refused while the index has not reached the required sequence', async () => {
      await fixture.write('new', { keys: ['a'], value: 1 })
      await assertFails(fixture.reduce({ groupLevel: 0, through: 'newest' }), 'not_hosted')
      assert.equal((await fixture.reduce({ groupLevel: 0 })).length, 1)
    })
  })
}
