import assert from 'node:assert/strict'
import { type IndexDefinition, indexId } from '../contracts/index-replica.ts'
import { ReplicaError } from '../contracts/shard-replica.ts'
import { assertFails, byKeys, byValue, context, type IndexFixture, rowText } from './index-fixture.ts'
import { randomNumbers } from './random-numbers.ts'

const ids = ['a', 'b', 'ä', '\uff5e', '😀']
const keys = ['a', 'a\u00ff', 'b', '\u0001', '\u0080', 'ab']

export function contentCases(fixture: IndexFixture): void {
  const rows = async (): Promise<readonly string[]> => (await fixture.scan()).rows.map(rowText)

  describe('contents', () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      it(`equal a recomputation after random edits, deletions, conflicts and purges (seed ${seed})`, async () => {
        const random = randomNumbers(seed)
        for (let step = 0; step < 60; step++) {
          const id = ids[random(ids.length)]!
          const document = { keys: keys.filter(() => random(3) === 0), value: random(5), fails: random(9) === 0 }
          const exists = await fixture.replica.openDocument({ id, body: false, tree: false }, context)
          const action = random(6)
          if (action < 3 || exists === null) await fixture.write(id, document)
          else if (action === 3 && !exists.leaves[0]!.deleted) await fixture.write(id, null)
          else if (action === 4) await fixture.purge(id)
          else await fixture.store(id, String(random(9)).repeat(32), document)
          if (random(4) > 0) continue
          await fixture.build()
          assert.deepEqual(await rows(), await fixture.expected())
        }
      })
    }

    it('have no row of a deleted or purged document', async () => {
      for (const id of ['deleted', 'purged', 'kept']) await fixture.write(id, { keys: ['a'], value: 1 })
      await fixture.build()
      assert.equal((await rows()).length, 3)
      await fixture.write('deleted', null)
      await fixture.purge('purged')
      await fixture.build()
      assert.deepEqual(await rows(), ['["a","kept",0,"1"]'])
    })

    it('come from the changes since the last build only', async () => {
      for (const id of ['a', 'b']) await fixture.write(id, { keys: ['a'], value: 1 })
      await fixture.build()
      await fixture.write('b', { keys: ['b'], value: 2 })
      await fixture.build()
      await fixture.build()
      assert.deepEqual(fixture.mapped, ['a', 'b', 'b'])
    })

    it('are shared by equal definitions, and by no others', async () => {
      await fixture.write('doc', { keys: ['a'], value: 7 })
      const { options } = byKeys
      const reordered = { ...byKeys, options: Object.fromEntries(Object.entries(options).toReversed()) }
      await fixture.build(byKeys)
      await fixture.build(reordered)
      assert.equal(indexId(reordered), indexId(byKeys))
      assert.deepEqual(fixture.mapped, ['doc'])
      const others: Partial<IndexDefinition>[] = [
        { kind: 'x' }, { map: 'x' }, { reduce: null }, { options: {} }, { options: { local_seq: true } },
      ]
      assert.equal(new Set([byKeys, ...others].map(part => indexId({ ...byKeys, ...part }))).size, others.length + 1)
      await fixture.build(byValue)
      assert.deepEqual((await fixture.scan({ index: indexId(byValue) })).rows.map(rowText), ['["7","doc",0,"7"]'])
      assert.deepEqual(await rows(), ['["a","doc",0,"7"]'])
    })

    it('begin anew for a replica with another history, and are refused until then', async () => {
      await fixture.write('old', { keys: ['a'], value: 1 })
      const { position: { history } } = await fixture.build()
      fixture.replace()
      await fixture.write('new', { keys: ['b'], value: 2 })
      await assertFails(fixture.scan({}, { ...context, history }), 'other_history')
      await assertFails(
        fixture.indexes.buildIndex({ definition: byKeys, through: 0, waitMs: 0 }, { ...context, history }),
        'other_history',
      )
      await assertFails(fixture.scan(), 'not_hosted')
      await assertFails(fixture.indexes.indexInfo(indexId(byKeys), context), 'not_hosted')
      const { position } = await fixture.build()
      assert.notEqual(position.history, history)
      assert.deepEqual(await rows(), ['["b","new",0,"2"]'])
    })

    it('continue when the replica has forgotten purges that they have read', async () => {
      for (const id of ['purged', 'kept']) await fixture.write(id, { keys: ['a'], value: 1 })
      await fixture.build()
      await fixture.purge('purged')
      await fixture.build()
      await fixture.replica.trimPurges(1, context)
      await fixture.write('new', { keys: ['b'], value: 2 })
      await fixture.build()
      assert.deepEqual(fixture.mapped, ['purged', 'kept', 'new'])
      assert.deepEqual(await rows(), ['["a","kept",0,"1"]', '["b","new",0,"2"]'])
    })

    it('begin anew when the replica has forgotten purges', async () => {
      for (const id of ['purged', 'kept']) await fixture.write(id, { keys: ['a'], value: 1 })
      const { version } = await fixture.build()
      await fixture.purge('purged')
      await fixture.replica.trimPurges(1, context)
      await fixture.write('new', { keys: ['b'], value: 2 })
      assert.notEqual((await fixture.build()).version, version)
      assert.deepEqual(await rows(), ['["a","kept",0,"1"]', '["b","new",0,"2"]'])
      assert.deepEqual(fixture.mapped, ['purged', 'kept', 'kept', 'new'])
    })
  })
}

export function buildCases(fixture: IndexFixture): void {
  const writeMany = async (prefix: string, count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await fixture.write(`${prefix}${i}`, { keys: ['k'], value: i })
  }
  const build = (waitMs: number, call = context): ReturnType<typeof fixture.build> =>
    fixture.indexes.buildIndex({ definition: byKeys, through: 'newest', waitMs }, call)

  describe('a build', () => {
    it('answers at its deadline with the progress, and continues', async () => {
      await writeMany('doc', 150)
      fixture.hold(1)
      let early = await build(20)
      // The first changes may take longer to read than the call waits.
      while (early.readSequence === 0) early = await build(20)
      assert(early.readSequence < early.through)
      assert.equal(early.position.sequence, 0)
      assert.equal((await fixture.scan()).head.readSequence, early.readSequence)
      await assertFails(fixture.scan({ through: 'newest' }), 'not_hosted')
      await assertFails(fixture.scan({ through: early.through }), 'not_hosted')
      assert.equal((await fixture.indexes.indexInfo(indexId(byKeys), context)).building, true)
      fixture.release()
      const late = await fixture.indexes.buildIndex(
        { definition: byKeys, through: early.through, waitMs: 4000 }, context,
      )
      assert.deepEqual([late.position.sequence, late.rowCount, fixture.mapped.length], [early.through, 150, 150])
      assert.equal((await fixture.scan({ through: 'newest' })).rows.length, 150)
    })

    it('answers at once when it is not to wait', async () => {
      await writeMany('doc', 1)
      fixture.hold()
      assert.equal((await build(0)).readSequence, 0)
      await fixture.held
      fixture.release()
      assert.equal((await build(4000)).rowCount, 1)
      assert.deepEqual(fixture.mapped, ['doc0'])
    })

    it('treats a sequence that the replica has not reached as the newest', async () => {
      await writeMany('doc', 2)
      const { sequence } = await fixture.newest()
      const reply = await fixture.indexes.buildIndex({ definition: byKeys, through: 1e9, waitMs: 4000 }, context)
      assert.deepEqual([reply.through, reply.position.sequence], [sequence, sequence])
    })

    it('ends within the timeout of its call, and when its call is cancelled', async () => {
      await writeMany('doc', 1)
      fixture.hold()
      await assertFails(build(60_000, { timeoutMs: 20 }), 'timeout')
      const controller = new AbortController()
      const cancelled = assertFails(build(60_000, { ...context, signal: controller.signal }), 'cancelled')
      await fixture.held
      controller.abort()
      await cancelled
    })

    it('goes on when one of the calls that wait for it is cancelled or times out', async () => {
      await writeMany('doc', 3)
      fixture.hold()
      const controller = new AbortController()
      const cancelled = assertFails(build(60_000, { ...context, signal: controller.signal }), 'cancelled')
      const timedOut = assertFails(build(60_000, { timeoutMs: 20 }), 'timeout')
      const waiting = build(4000)
      await fixture.held
      controller.abort()
      await cancelled
      await timedOut
      fixture.release()
      assert.equal((await waiting).rowCount, 3)
      const { building, waiting: left } = await fixture.indexes.indexInfo(indexId(byKeys), context)
      assert.deepEqual([building, left, fixture.mapped.length], [false, 0, 3])
    })

    it('that fails ends, so that no call waits for it', async () => {
      await writeMany('doc', 1)
      fixture.failure = new ReplicaError('storage', 'the disk failed')
      await assertFails(build(4000), 'storage')
      fixture.failure = undefined
      const { building, waiting } = await fixture.indexes.indexInfo(indexId(byKeys), context)
      assert.deepEqual([building, waiting], [false, 0])
    })

    it('has not reached a change before it has applied the later change of the same document', async () => {
      await writeMany('first', 1)
      fixture.hold()
      const first = fixture.build()
      await fixture.held
      await fixture.write('doc', { keys: ['early'], value: 1 })
      const { sequence } = await fixture.newest()
      const second = fixture.build()
      await writeMany('other', 120)
      await fixture.write('doc', { keys: ['late'], value: 2 })
      fixture.hold(1)
      await fixture.held
      const { readSequence, waiting } = await fixture.indexes.indexInfo(indexId(byKeys), context)
      assert(readSequence > sequence)
      assert.equal(waiting, 1)
      await assertFails(fixture.scan({ through: sequence }), 'not_hosted')
      fixture.release()
      await first
      await second
      const late = { key: 'late', inclusive: true }
      assert.equal((await fixture.scan({ ranges: [{ lower: late, upper: late }], through: sequence })).rows.length, 1)
    })

    it('fails with the error of the replica, and the next one continues where it ended', async () => {
      await writeMany('doc', 150)
      fixture.hold(1)
      const building = assertFails(build(4000), 'storage')
      await fixture.held
      fixture.failure = new ReplicaError('storage', 'the disk failed')
      fixture.release()
      await building
      fixture.failure = undefined
      assert.equal((await build(4000)).rowCount, 150)
      assert.equal(fixture.mapped.length, 150)
    })

    it('fails when the replica is replaced, and does not keep rows of the old one', async () => {
      await writeMany('old', 150)
      fixture.hold(1)
      const building = assertFails(build(4000), 'other_history')
      await fixture.held
      fixture.replace()
      await writeMany('new', 1)
      fixture.release()
      const { rowCount } = await fixture.build()
      await building
      assert.equal(rowCount, 1)
      assert.deepEqual((await fixture.scan()).rows.map(({ id }) => id), ['new0'])
    })
  })
}
