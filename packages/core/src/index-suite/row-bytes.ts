import assert from 'node:assert/strict'
import { indexId } from '../contracts/index-replica.ts'
import { byBytes, type IndexFixture, rowText } from './index-fixture.ts'

/** Each byte once, as a key. */
const allBytes = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))

export function rowBytesCases(fixture: IndexFixture): void {
  describe('rows', () => {
    it('have keys and values of any bytes, and values without bytes', async () => {
      const keys = ['k', `k${allBytes}`, `k${allBytes.repeat(40)}`]
      await fixture.write('doc', { keys, value: 0 })
      await fixture.build(byBytes)
      const { rows } = await fixture.scan({ index: indexId(byBytes) })
      assert.deepEqual(rows.map(({ key }) => key), keys)
      assert.deepEqual(rows.map(({ value }) => Buffer.from(value).toString('latin1')), keys.map(key => key.slice(1)))
    })

    it('of one key and document are ordered by number, however many they are', async () => {
      await fixture.write('doc', { keys: Array.from({ length: 1100 }, () => 'k'), value: 0 })
      await fixture.build()
      const numbers = Array.from({ length: 1100 }, (_, number) => number)
      const scan = async (descending: boolean): Promise<readonly number[]> =>
        (await fixture.scan({ descending })).rows.map(({ number }) => number)
      assert.deepEqual(await scan(false), numbers)
      assert.deepEqual(await scan(true), numbers.toReversed())
    })

    it('are ordered by documents before numbers when the id of one document begins with that of another', async () => {
      const ids = ['x', 'x\u0000', 'x\u0000\u0000', 'x\u0000x', 'x\u0001', 'x0', 'xx']
      for (const id of ids.toReversed()) await fixture.write(id, { keys: ['k', 'k'], value: 0 })
      await fixture.build()
      const { rows } = await fixture.scan()
      assert.deepEqual(rows.map(({ id, number }) => [id, number]), ids.flatMap(id => [[id, 0], [id, 1]]))
      const bound = { key: 'k', id: 'x', inclusive: true }
      assert.equal((await fixture.scan({ ranges: [{ lower: bound, upper: bound }] })).rows.length, 2)
      await fixture.write('x', null)
      await fixture.build()
      assert.deepEqual((await fixture.scan()).rows.map(rowText), rows.slice(2).map(rowText))
    })
  })
}
