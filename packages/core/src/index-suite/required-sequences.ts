import assert from 'node:assert/strict'
import type { BuildIndexReply, RequiredSequence } from '../contracts/index-replica.ts'
import { indexId } from '../contracts/index-replica.ts'
import { assertFails, byKeys, context, type IndexFixture } from './index-fixture.ts'

export function requiredSequenceCases(fixture: IndexFixture): void {
  const write = async (id: string): Promise<number> => {
    await fixture.write(id, { keys: ['k'], value: 1 })
    return (await fixture.newest()).sequence
  }
  const build = (through: RequiredSequence): Promise<BuildIndexReply> =>
    fixture.indexes.buildIndex({ definition: byKeys, through, waitMs: 4000 }, context)

  describe('the required sequence', () => {
    it('of a build that the index has reached is answered at once, whatever the replica does', async () => {
      const reached = await write('first')
      await build('newest')
      fixture.hold()
      await write('second')
      for (const through of [0, reached]) {
        const reply = await build(through)
        assert.deepEqual([reply.through, reply.position.sequence], [through, reached])
      }
      fixture.release()
    })

    it('of a read may be any up to the position of the index', async () => {
      const reached = await write('first')
      await build('newest')
      const behind = await write('second')
      const counts = async (through: RequiredSequence): Promise<readonly number[]> => [
        (await fixture.scan({ through })).rows.length, (await fixture.reduce({ through, groupLevel: 0 })).length,
      ]
      for (const through of [0, reached]) assert.deepEqual(await counts(through), [1, 1])
      for (const through of [behind, behind + 1000, 'newest'] as const) {
        await assertFails(fixture.scan({ through }), 'not_hosted')
        await assertFails(fixture.reduce({ through, groupLevel: 0 }), 'not_hosted')
      }
      await build(behind)
      for (const through of [behind, behind + 1000, 'newest'] as const) assert.deepEqual(await counts(through), [2, 1])
    })

    it('of one call is not changed by a call that requires less', async () => {
      await write('first')
      fixture.hold()
      const early = build('newest')
      await fixture.held
      const sequence = await write('second')
      const late = build('newest')
      assert.equal((await build(0)).through, 0)
      fixture.release()
      await early
      const { through, position } = await late
      assert.deepEqual([through, position.sequence], [sequence, sequence])
    })

    it('may be combined with the present history of the replica', async () => {
      await write('first')
      const { history } = await fixture.newest()
      const named = { ...context, history }
      const request = { definition: byKeys, through: 'newest' as const, waitMs: 4000 }
      assert.equal((await fixture.indexes.buildIndex(request, named)).rowCount, 1)
      assert.equal((await fixture.scan({ through: 'newest' }, named)).rows.length, 1)
      assert.equal((await fixture.indexes.indexInfo(indexId(byKeys), named)).rowCount, 1)
      await fixture.indexes.dropIndexes({ except: [] }, named)
    })
  })
}
