import assert from 'node:assert/strict'
import { indexId } from '../contracts/index-replica.ts'
import { assertFails, byKeys, byValue, context, type IndexFixture, rowText } from './index-fixture.ts'
import { randomNumbers } from './random-numbers.ts'

const ids = Array.from({ length: 130 }, (_, i) => `doc${i}`)
const keys = ['a', 'b', 'c', 'ab']

export function concurrentBuildCases(fixture: IndexFixture): void {
  const valueRows = async (): Promise<readonly string[]> =>
    (await fixture.scan({ index: indexId(byValue) })).rows.map(({ key, id }) => `${key} ${id}`)

  describe('builds', () => {
    for (const seed of [11, 12, 13, 14]) {
      it(`beside edits and purges end with the rows of a recomputation (seed ${seed})`, async () => {
        const random = randomNumbers(seed)
        const change = async (): Promise<void> => {
          const id = ids[random(ids.length)]!
          const document = { keys: keys.filter(() => random(2) === 0), value: random(5), fails: random(9) === 0 }
          const exists = await fixture.replica.openDocument({ id, body: false, tree: false }, context)
          const action = random(5)
          if (action === 4 && exists !== null) await fixture.purge(id)
          else if (action === 3 && exists !== null && !exists.leaves[0]!.deleted) await fixture.write(id, null)
          else await fixture.write(id, document)
        }
        for (const id of ids) await fixture.write(id, { keys, value: 1 })
        for (let round = 0; round < 12; round++) {
          await change()
          fixture.hold(random(2))
          const building = fixture.build()
          for (let step = random(30); step >= 0; step--) await change()
          fixture.release()
          await building
          await fixture.build()
          assert.deepEqual((await fixture.scan()).rows.map(rowText), await fixture.expected())
        }
      })
    }

    it('of an index that is new and of one that is not end with the rows of each', async () => {
      for (const id of ['a', 'b']) await fixture.write(id, { keys: ['k'], value: 1 })
      await fixture.build()
      await fixture.write('b', { keys: [], value: 2 })
      await fixture.write('c', { keys: ['k'], value: 3 })
      await Promise.all([fixture.build(), fixture.build(byValue)])
      assert.deepEqual((await fixture.scan()).rows.map(rowText), await fixture.expected())
      assert.deepEqual(await valueRows(), ['1 a', '2 b', '3 c'])
      assert.deepEqual(fixture.mapped.toSorted(), ['a', 'a', 'b', 'b', 'b', 'c', 'c'])
    })

    it('go on when another index is dropped', async () => {
      for (const id of ids) await fixture.write(id, { keys: ['k'], value: 1 })
      fixture.hold()
      const dropped = assertFails(fixture.build(byKeys), 'not_hosted')
      await fixture.held
      await fixture.indexes.buildIndex({ definition: byValue, through: 'newest', waitMs: 0 }, context)
      const kept = fixture.build(byValue)
      await fixture.indexes.dropIndexes({ except: [indexId(byValue)] }, context)
      await dropped
      fixture.release()
      assert.equal((await kept).rowCount, ids.length)
    })
  })
}
