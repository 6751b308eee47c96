import assert from 'node:assert/strict'
import type { LocalDocument } from '../contracts/shard-replica.ts'
import { bytes, collect, context, type ReplicaFixture, revsLimit, text } from './replica-fixture.ts'

async function put(fixture: ReplicaFixture, id: string, revision: number, body: string | null): Promise<LocalDocument> {
  const reply = await fixture.replica.updateLocalDocument({ id, revision, body: body === null
    ? null
    : bytes(body), mustExist: false }, context)
  return reply.kind === 'updated' ? reply.document : assert.fail(`${id} was not written: ${reply.kind}`)
}

async function open(fixture: ReplicaFixture, id: string): Promise<LocalDocument | null> {
  return (await fixture.replica.openLocalDocuments([id], context))[0] ?? null
}

async function merge(fixture: ReplicaFixture, ...locals: LocalDocument[]): Promise<void> {
  await fixture.replica.storeRevisions({ revisions: [], locals, revsLimit }, context)
}

export function localDocumentCases(fixture: ReplicaFixture): void {
  describe('local documents', () => {
    it('are written and read back under the revision that the caller chose', async () => {
      await put(fixture, 'mark', 1, '{"at":1}')
      const updated = await put(fixture, 'mark', 7, '{"at":2}')
      const opened = await open(fixture, 'mark')
      assert.deepEqual([opened?.id, opened?.revision, text(opened?.body), opened?.stamp], [
        'mark', 7, '{"at":2}', updated.stamp,
      ])
      assert.equal(await open(fixture, 'other'), null)
    })

    it('are opened in order up to the limit of a reply, and the first one whatever its size', async () => {
      for (const id of ['a', 'b', 'c', 'd']) await put(fixture, id, 1, JSON.stringify('x'.repeat(700_000)))
      const ids = async (...asked: string[]): Promise<unknown> =>
        (await fixture.replica.openLocalDocuments(asked, context)).map(local => local?.id)
      assert.deepEqual(await ids('a', 'b', 'c', 'd'), ['a', 'b'])
      assert.deepEqual(await ids('never', 'c', 'd'), [undefined, 'c', 'd'])
    })

    it('carry a stamp that always grows', async () => {
      const stamps: number[] = []
      for (let i = 0; i < 5; i++) stamps.push((await put(fixture, 'mark', i, '{}')).stamp)
      assert.equal(new Set(stamps).size, stamps.length)
      assert.deepEqual(stamps, stamps.toSorted((a, b) => a - b))
      await merge(fixture, {
        id: 'mark', revision: 9, stamp: stamps[4]! + 1_000_000, body: bytes('{"from":"a fast clock"}'),
      })
      assert((await put(fixture, 'mark', 10, '{}')).stamp > stamps[4]! + 1_000_000)
    })

    it('become tombstones when they are deleted, and a second deletion fails when they must exist', async () => {
      await put(fixture, 'mark', 1, '{}')
      const deletion = { id: 'mark', revision: 0, body: null, mustExist: true }
      assert.equal((await fixture.replica.updateLocalDocument(deletion, context)).kind, 'updated')
      assert.equal((await open(fixture, 'mark'))?.body, null)
      assert.deepEqual(await fixture.replica.updateLocalDocument(deletion, context), { kind: 'missing' })
      assert.deepEqual(await fixture.replica.updateLocalDocument({ ...deletion, id: 'never' }, context), {
        kind: 'missing',
      })
    })

    it('are listed by id within bounds, without the deleted ones', async () => {
      for (const id of ['b', 'é', 'a', 'c', '😀', '\uff5e']) await put(fixture, id, 1, '{}')
      await put(fixture, 'c', 0, null)
      const scan = async (request: object): Promise<string[]> =>
        (await collect(fixture.replica.scanLocalDocuments({ descending: false, ...request }, context))).map(local =>
          local.id)
      assert.deepEqual(await scan({}), ['a', 'b', 'é', '\uff5e', '😀'])
      assert.deepEqual(await scan({ descending: true, limit: 2 }), ['😀', '\uff5e'])
      assert.deepEqual(await scan({ start: { id: 'a', inclusive: false }, end: { id: 'é', inclusive: true } }), [
        'b', 'é',
      ])
      assert.deepEqual(await scan({ limit: 0 }), [])
    })

    it('are not listed or counted as documents', async () => {
      await put(fixture, 'mark', 1, '{}')
      const { documentCount, deletedCount } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual([documentCount, deletedCount], [0, 0])
      assert.deepEqual(
        await collect(fixture.replica.scanDocuments({ descending: false, body: false, leaves: false }, context)), [],
      )
      assert.equal(await fixture.replica.openDocument({ id: 'mark', body: false, tree: false }, context), null)
    })
  })
}

export function localMergeCases(fixture: ReplicaFixture): void {
  describe('local documents from elsewhere', () => {
    it('merge by stamp, then revision, then body, whatever the order', async () => {
      const base: LocalDocument = { id: 'mark', revision: 5, stamp: 1000, body: bytes('{"v":"m"}') }
      await merge(fixture, base)
      for (const weaker of [
        { ...base, stamp: 999, revision: 9 }, { ...base, revision: 4, body: bytes('{"v":"z"}') },
        { ...base, body: bytes('{"v":"a"}') }, { ...base, body: null },
      ]) {
        await merge(fixture, weaker)
        assert.equal(text((await open(fixture, 'mark'))?.body), '{"v":"m"}')
      }
      await merge(fixture, { ...base, body: bytes('{"v":"n"}') })
      assert.equal(text((await open(fixture, 'mark'))?.body), '{"v":"n"}')
      await merge(fixture, { ...base, revision: 6, body: bytes('{"v":"a"}') })
      assert.equal(text((await open(fixture, 'mark'))?.body), '{"v":"a"}')
      await merge(fixture, { ...base, stamp: 1001, revision: 1, body: null })
      assert.equal((await open(fixture, 'mark'))?.body, null)
      await merge(fixture, { ...base, stamp: 1001, revision: 1, body: bytes('{}') })
      assert.equal(text((await open(fixture, 'mark'))?.body), '{}')
    })

    it('change nothing when they are stored again', async () => {
      const local: LocalDocument = { id: 'mark', revision: 5, stamp: 1000, body: bytes('{}') }
      await merge(fixture, local)
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      await merge(fixture, local, local)
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).sequence, sequence)
    })
  })
}
