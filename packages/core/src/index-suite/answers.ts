import assert from 'node:assert/strict'
import type { IndexHead, ReducedGroup, ReduceIndexRequest } from '../contracts/index-replica.ts'
import { assertFails, byKeys, context, everything, type IndexFixture } from './index-fixture.ts'

export function answerCases(fixture: IndexFixture): void {
  const writeMany = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await fixture.write(`doc${i}`, { keys: [`k${i}`], value: i })
    await fixture.build()
  }
  const groups: ReduceIndexRequest = {
    index: everything.index, through: 0, ranges: [{}], descending: false, groupLevel: 'exact',
  }
  const reduced = (call = context): AsyncIterable<readonly (IndexHead | ReducedGroup)[]> =>
    fixture.indexes.reduceIndex(groups, call)

  describe('an answer', () => {
    it('leaves out rows and groups behind the place after which it continues', async () => {
      await writeMany(9)
      const { rows } = await fixture.scan()
      assert.deepEqual((await fixture.scan({ after: rows[2]!, skip: 3, limit: 2 })).rows, rows.slice(6, 8))
      const listed = await fixture.reduce({ groupLevel: 'exact' })
      assert.equal(listed.length, 9)
      assert.deepEqual(
        await fixture.reduce({ groupLevel: 'exact', after: listed[2]!, skip: 3, limit: 2 }), listed.slice(6, 8),
      )
      assert.deepEqual((await fixture.scan({ skip: 100 })).rows, [])
      assert.deepEqual(await fixture.reduce({ groupLevel: 'exact', limit: 0 }), [])
      assert.deepEqual(await fixture.reduce({ groupLevel: 0, ranges: [] }), [])
    })

    it('continues also behind a place where this replica has no row or group', async () => {
      await writeMany(9)
      const ranges = [{ lower: { key: 'k6', inclusive: true } }, {}]
      for (const descending of [false, true]) {
        const { rows } = await fixture.scan({ ranges, descending })
        const listed = await fixture.reduce({ ranges, descending, groupLevel: 'exact' })
        const after = 'k6x'
        for (const range of [0, 1]) {
          const behind = (row: { readonly range: number }, key: string): boolean =>
            row.range > range || (row.range === range && (descending ? key < after : key > after))
          const place = { range, key: after, id: 'unknown', number: 0 }
          assert.deepEqual(
            (await fixture.scan({ ranges, descending, after: place })).rows, rows.filter(row => behind(row, row.key)),
          )
          assert.deepEqual(
            await fixture.reduce({ ranges, descending, groupLevel: 'exact', after: { range, group: after } }),
            listed.filter(row => behind(row, row.group)),
          )
        }
      }
    })

    it('of an index without rows is only its head', async () => {
      await fixture.build()
      const { head, rows } = await fixture.scan()
      assert.deepEqual([head.rowCount, head.rowsBefore, rows], [0, 0, []])
      for (const groupLevel of [0, 1, 'exact'] as const) assert.deepEqual(await fixture.reduce({ groupLevel }), [])
    })

    it('counts the rows before its first range also when it continues after a place', async () => {
      await writeMany(9)
      const ranges = [{ lower: { key: 'k3', inclusive: true } }]
      const { head, rows } = await fixture.scan({ ranges })
      assert.equal(head.rowsBefore, 3)
      assert.equal((await fixture.scan({ ranges, after: rows[1]! })).head.rowsBefore, 3)
    })

    it('of a reduction begins with the state of the index', async () => {
      await writeMany(3)
      const { head } = await fixture.scan()
      for (const request of [groups, { ...groups, ranges: [] }]) {
        const pages = await all(fixture.indexes.reduceIndex(request, context))
        assert.deepEqual(pages[0]![0], { ...head, rowsBefore: 0 })
      }
    })

    it('of a reduction is of one state of the index, also when builds and drops go on', async () => {
      await writeMany(250)
      let found = -1
      for await (const page of reduced()) {
        if (found === -1) {
          for (let i = 0; i < 250; i++) await fixture.write(`doc${i}`, null)
          assert.equal((await fixture.build()).rowCount, 0)
          await fixture.indexes.dropIndexes({ except: [] }, context)
        }
        found += page.length
      }
      assert.equal(found, 250)
    })

    it('of a reduction is cancelled by its signal', async () => {
      await writeMany(1)
      const aborted = { ...context, signal: AbortSignal.abort() }
      await assertFails(all(reduced(aborted)), 'cancelled')
      await assertFails(fixture.indexes.buildIndex({ definition: byKeys, through: 0, waitMs: 0 }, aborted), 'cancelled')
    })

    it('that a reader leaves early does not end the next one', async () => {
      await writeMany(250)
      for await (const page of reduced()) {
        assert(page.length > 0)
        break
      }
      assert.equal((await fixture.reduce({ groupLevel: 'exact' })).length, 250)
    })
  })
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
