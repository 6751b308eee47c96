import assert from 'node:assert/strict'
import type { RowBound, RowRange } from '../contracts/index-replica.ts'
import { folded, type IndexFixture, rowText } from './index-fixture.ts'
import { randomNumbers } from './random-numbers.ts'

export function largeIndexCases(fixture: IndexFixture): void {
  /** Writes documents whose rows have 400 different keys in four groups of the first level. */
  const writeSome = async (random: (below: number) => number, count: number): Promise<void> => {
    const key = (): string => `${'wxyz'[random(4)]}${random(100)}`
    for (let i = 0; i < count; i++) {
      const id = `doc${random(400)}`
      const document = random(5) === 0 ? null : { keys: Array.from({ length: random(6) }, key), value: random(9) }
      const rows = await fixture.replica.openDocument({ id, body: false, tree: false }, { timeoutMs: 5000 })
      if (document !== null || (rows !== null && !rows.leaves[0]!.deleted)) await fixture.write(id, document)
    }
  }

  describe('a large index', () => {
    it('equals a recomputation after each of several builds, in rows, ranges and reductions', async () => {
      const random = randomNumbers(21)
      const bound = (): RowBound => (
        { key: `${'wxyz'[random(4)]}${random(100)}`, inclusive: random(2) > 0, ...(random(3) === 0 && { id: 'doc2' }) })
      const range = (): RowRange =>
        ({ ...(random(3) > 0 && { lower: bound() }), ...(random(3) > 0 && { upper: bound() }) })
      for (const changes of [900, 300, 1, 60]) {
        await writeSome(random, changes)
        const { rowCount } = await fixture.build()
        const expected = await fixture.expected()
        assert.equal(rowCount, expected.length)
        assert.deepEqual((await fixture.scan()).rows.map(rowText), expected)
        for (let round = 0; round < 12; round++) {
          const ranges = [range(), range()]
          const { head, rows } = await fixture.scan({ ranges })
          const from = rows[0]?.range === 0 ? expected.indexOf(rowText(rows[0])) : head.rowsBefore
          assert.equal(head.rowsBefore, from)
          const groupLevel = ([0, 1, 'exact'] as const)[round % 3]!
          const groups = Map.groupBy(rows, row =>
            JSON.stringify([row.range, groupLevel === 'exact' ? row.key : row.key.slice(0, groupLevel)]))
          const found = await fixture.reduce({ ranges, groupLevel })
          assert.deepEqual(
            found.map(group => [JSON.stringify([group.range, group.group]), String(Buffer.from(group.value))]),
            [...groups].map(([name, members]) => [name, String(folded(members))]),
          )
        }
      }
    })
  })
}
