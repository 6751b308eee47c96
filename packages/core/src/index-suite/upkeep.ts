import assert from 'node:assert/strict'
import { indexId } from '../contracts/index-replica.ts'
import { assertFails, byKeys, byValue, context, type IndexFixture } from './index-fixture.ts'

export function upkeepCases(fixture: IndexFixture): void {
  const info = (definition = byKeys): ReturnType<typeof fixture.indexes.indexInfo> =>
    fixture.indexes.indexInfo(indexId(definition), context)

  describe('upkeep', () => {
    it('informs about an index', async () => {
      await fixture.write('doc', { keys: ['a', 'b'], value: 100_000 })
      const { through, ...state } = await fixture.build()
      const { sizes, ...rest } = await info()
      assert.deepEqual(rest, {
        ...state, definition: byKeys, building: false, waiting: 0, failedCount: 0, failures: [],
      })
      const newest = await fixture.newest()
      assert.deepEqual([state.position, through, state.rowCount], [newest, newest.sequence, 2])
      await fixture.write('large', { keys: ['x'.repeat(5000)], value: 1 })
      await fixture.build()
      assert((await info()).sizes.external >= sizes.external + 5000)
      assert((await info()).sizes.active >= (await info()).sizes.external)
    })

    it('counts at least the rows of an index as its size on disk, as soon as it is built', async () => {
      await fixture.write('doc', { keys: ['a'], value: 1 })
      await fixture.build()
      const { sizes: { active, file } } = await info()
      assert(active > 0 && file >= active)
    })

    it('names the documents whose map function fails, until it succeeds or they are gone', async () => {
      for (let i = 0; i < 15; i++) await fixture.write(`doc${i}`, { keys: ['a'], value: i, fails: i > 0 })
      await fixture.build()
      const { rowCount, failedCount, failures } = await info()
      assert.deepEqual([rowCount, failedCount, failures.length], [1, 14, 10])
      for (const { id, error } of failures) assert(error.includes(`cannot map ${id}`))
      for (let i = 1; i < 13; i++) await fixture.write(`doc${i}`, { keys: ['a'], value: i })
      await fixture.write('doc13', null)
      await fixture.purge('doc14')
      await fixture.build()
      assert.deepEqual([(await info()).rowCount, (await info()).failures], [13, []])
    })

    it('keeps the version of an index until its rows change', async () => {
      await fixture.write('doc', { keys: ['a'], value: 1 })
      const { version, position } = await fixture.build()
      await fixture.write('doc', { keys: ['a'], value: 1 })
      await fixture.write('other', { keys: [], value: 1 })
      const later = await fixture.build()
      assert(later.position.sequence > position.sequence)
      assert.equal(later.version, version)
      const versions = new Set([version])
      const documents = [
        { keys: ['a'], value: 2 }, { keys: ['a', 'b'], value: 2 }, { keys: ['b', 'a'], value: 2 }, null,
      ]
      for (const document of documents) {
        await fixture.write('doc', document)
        versions.add((await fixture.build()).version)
      }
      assert.equal(versions.size, 1 + documents.length)
    })

    it('gives equal rows equal versions, in all histories and after any changes', async () => {
      const write = async (id: string): Promise<void> =>
        fixture.write(id, { keys: [id, `${id}${id}`], value: id.length })
      for (const id of ['a', 'b', 'c']) await write(id)
      const { version } = await fixture.build()
      await fixture.write('b', { keys: ['x', 'b', 'y'], value: 9 })
      await fixture.write('c', null)
      const { version: changed } = await fixture.build()
      assert.notEqual(changed, version)
      for (const id of ['c', 'b']) await write(id)
      assert.equal((await fixture.build()).version, version)
      fixture.replace()
      for (const id of ['c', 'gone', 'b', 'purged', 'a']) await write(id)
      const { version: more } = await fixture.build()
      assert.notEqual(more, version)
      await fixture.write('gone', null)
      await fixture.purge('purged')
      assert.equal((await fixture.build()).version, version)
    })

    it('gives equal rows of other documents another version', async () => {
      const versions = new Set<string>()
      for (const ids of [['a'], ['b'], ['a', 'b']]) {
        fixture.replace()
        for (const id of ids) await fixture.write(id, { keys: ['k'], value: 1 })
        versions.add((await fixture.build()).version)
      }
      assert.equal(versions.size, 3)
    })

    it('gives an index that was dropped another version than before when its rows have changed', async () => {
      for (const id of ['gone', 'kept']) await fixture.write(id, { keys: ['a'], value: 1 })
      const { version } = await fixture.build()
      await fixture.indexes.dropIndexes({ except: [] }, context)
      await fixture.write('gone', null)
      const built = await fixture.build()
      assert.equal(built.rowCount, 1)
      assert.notEqual(built.version, version)
    })

    it('drops the indexes that are not named, and ends their builds', async () => {
      await fixture.write('doc', { keys: ['a'], value: 1 })
      await fixture.build(byValue)
      fixture.hold()
      const building = assertFails(fixture.build(), 'not_hosted')
      await fixture.held
      await fixture.indexes.dropIndexes({ except: [indexId(byValue), 'unknown'] }, context)
      await building
      await assertFails(fixture.scan(), 'not_hosted')
      assert.equal((await info(byValue)).rowCount, 1)
      fixture.release()
      assert.equal((await fixture.build()).rowCount, 1)
    })

    it('refuses every call that names another history of the replica', async () => {
      await fixture.build()
      const other = { ...context, history: 'another' }
      const { indexes } = fixture
      await assertFails(indexes.buildIndex({ definition: byKeys, through: 0, waitMs: 0 }, other), 'other_history')
      await assertFails(fixture.scan({}, other), 'other_history')
      await assertFails(indexes.indexInfo(indexId(byKeys), other), 'other_history')
      await assertFails(indexes.dropIndexes({ except: [] }, other), 'other_history')
      assert.equal((await info()).rowCount, 0)
    })
  })
}
