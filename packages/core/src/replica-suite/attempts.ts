import assert from 'node:assert/strict'
import type { OpenedRevision } from '../contracts/shard-replica.ts'
import { context, documentEdit, type ReplicaFixture, revision, revisionFrom, revsLimit } from './replica-fixture.ts'

/** Tests that replicas recognise one client's repeated attempt to edit (`DocumentEdit.attempt`). */
export function attemptCases(fixture: ReplicaFixture): void {
  const attemptOf = (opened: OpenedRevision | undefined): number | undefined =>
    opened?.kind === 'found' ? opened.revision.attempt : undefined

  describe('attempts', () => {
    it('get the same answer when they are repeated, and other attempts at the same edit get a conflict', async () => {
      const parent = await fixture.write('doc', { v: 1 })
      const claim = documentEdit('doc', { claimed: true }, parent)
      const first = await fixture.edit({ ...claim, attempt: 7 })
      assert.equal(first.kind, 'updated')
      assert.deepEqual(await fixture.edit({ ...claim, attempt: 7 }), first)
      assert.deepEqual(await fixture.edit({ ...claim, attempt: 8 }), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(claim), { kind: 'conflict' })
      assert.deepEqual(await fixture.leaves('doc'), [revisionFrom(first)])
    })

    it('get the same answer when stemming has removed the parent', async () => {
      const parent = await fixture.write('doc', { v: 1 })
      const request = { edits: [{ ...documentEdit('doc', { v: 2 }, parent), attempt: 7 }], revsLimit: 1 }
      const first = await fixture.replica.updateDocuments(request, context)
      assert.deepEqual(await fixture.replica.updateDocuments(request, context), first)
    })

    it('are recognised when they deleted or revived the document', async () => {
      const parent = await fixture.write('doc', {})
      const deletion = { ...documentEdit('doc', {}, parent, true), attempt: 2 ** 48 }
      const gone = await fixture.edit(deletion)
      assert.deepEqual(await fixture.edit(deletion), gone)
      assert.deepEqual(await fixture.edit({ ...deletion, attempt: 3 }), { kind: 'conflict' })
      const revival = { ...documentEdit('doc', { life: 2 }), attempt: 4 }
      const revived = await fixture.edit(revival)
      assert.deepEqual(await fixture.edit(revival), revived)
      assert.deepEqual(await fixture.leaves('doc'), [revisionFrom(revived)])
    })

    it('restore a deleted document only if they name its tombstone', async () => {
      const parent = await fixture.write('doc', {})
      const tombstone = revisionFrom(await fixture.edit(documentEdit('doc', {}, parent, true)))
      const revival = { ...documentEdit('doc', { life: 2 }), attempt: 4 }
      assert.deepEqual(await fixture.edit({ ...revival, revives: null }), { kind: 'tombstone', revision: tombstone })
      assert.deepEqual(await fixture.leaves('doc'), [`-${tombstone}`])
      const named = { ...revival, revives: tombstone }
      const outcome = await fixture.edit(named)
      const revived = revisionFrom(outcome)
      assert.deepEqual(await fixture.edit(named), outcome)
      const end = revisionFrom(await fixture.edit(documentEdit('doc', {}, revived, true)))
      assert.deepEqual(await fixture.edit(named), { kind: 'tombstone', revision: end })
      assert.deepEqual(await fixture.leaves('doc'), [`-${end}`])
    })

    it('conflict when another edit of the same revision was stored from elsewhere', async () => {
      const parent = await fixture.write('doc', { v: 1 })
      const edit = { ...documentEdit('doc', { v: 2 }, parent), attempt: 5 }
      await fixture.edit(edit)
      await fixture.store(revision('doc', 2, ['0', parent.slice(2)]))
      assert.deepEqual(await fixture.edit(edit), { kind: 'conflict' })
    })

    it('conflict once their revision was replaced, since only leaves keep their attempts', async () => {
      const edit = { ...documentEdit('doc', { v: 1 }), attempt: 5 }
      const first = revisionFrom(await fixture.edit(edit))
      await fixture.write('doc', { v: 2 }, first)
      assert.deepEqual(await fixture.edit(edit), { kind: 'conflict' })
      assert.equal(attemptOf((await fixture.openRevisions('doc', [first]))[0]), undefined)
    })

    it('are forgotten when their revision is purged and then stored again without the attempt', async () => {
      const made = revision('doc', 1, ['a'])
      await fixture.store({ ...made, attempt: 5 })
      await fixture.replica.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [made.path] }] }, context)
      await fixture.replica.storeRevisions({ revisions: [made], revsLimit, external: true }, context)
      assert.equal(attemptOf((await fixture.openRevisions('doc', 'leaves'))[0]), undefined)
    })

    it('are sent to other replicas with the revisions that they made', async () => {
      const edit = { ...documentEdit('doc', { v: 1 }), attempt: 123_456_789_012 }
      const outcome = await fixture.edit(edit)
      const [opened] = await fixture.openRevisions('doc', 'leaves')
      assert.equal(attemptOf(opened), edit.attempt)
      const other = await fixture.another()
      assert(opened?.kind === 'found')
      await other.storeRevisions({ revisions: [opened.revision], revsLimit }, context)
      const again = await other.updateDocuments({ edits: [edit, { ...edit, attempt: 1 }], revsLimit }, context)
      assert.deepEqual(again, { kind: 'decided', outcomes: [outcome, { kind: 'conflict' }] })
    })
  })

  describe('rivals', () => {
    const store = async (...revisions: ReturnType<typeof revision>[]): Promise<readonly number[]> =>
      (await fixture.replica.storeRevisions({ revisions, revsLimit }, context)).rivals

    it('are revisions whose parent has another child, and first revisions of a document that has others', async () => {
      const made = (id: string, start: number, ids: readonly string[], attempt: number) => ({
        ...revision(id, start, ids), attempt,
      })
      assert.deepEqual(await store(made('a', 2, ['b', 'a'], 1), made('c', 1, ['c'], 2)), [])
      assert.deepEqual(await store(made('a', 2, ['d', 'a'], 3), made('e', 1, ['e'], 4), made('c', 1, ['f'], 5)), [0, 2])
      assert.deepEqual(await fixture.leaves('a'), ['2-d', '2-b'])
      assert.deepEqual(await store(revision('a', 2, ['g', 'a'])), [])
    })

    it('are revisions beside a branch whose ancestors were removed by stemming', async () => {
      const made = (ids: readonly string[], attempt: number, start = 2) => ({ ...revision('a', start, ids), attempt })
      const storeShort = async (each: ReturnType<typeof made>): Promise<readonly number[]> =>
        (await fixture.replica.storeRevisions({ revisions: [each], revsLimit: 1 }, context)).rivals
      assert.deepEqual(await storeShort(made(['b', 'a'], 1)), [])
      assert.deepEqual(await storeShort(made(['b', 'a'], 5)), [0])
      assert.deepEqual(await storeShort(made(['c', 'a'], 2)), [0])
      assert.deepEqual(await storeShort(made(['d', 'c'], 3, 3)), [])
      assert.deepEqual(await storeShort(made(['e', 'b'], 4, 3)), [])
      assert.deepEqual(await fixture.leaves('a'), ['3-e', '3-d'])
    })

    it('are revisions of other attempts, also replaced ones, but not those that are stored again', async () => {
      const made = (attempt: number) => ({ ...revision('a', 2, ['b', 'a']), attempt })
      assert.deepEqual(await store(made(1)), [])
      assert.deepEqual(await store(made(1)), [])
      assert.deepEqual(await store(made(2)), [0])
      await store(revision('a', 3, ['c', 'b', 'a']))
      assert.deepEqual(await store(made(1)), [])
      assert.deepEqual(await store(made(2)), [0])
      assert.deepEqual(await store(revision('a', 2, ['b', 'a'])), [])
      assert.deepEqual(await fixture.leaves('a'), ['3-c'])
    })

    it('are replaced revisions of another attempt than the first one that the replica heard of', async () => {
      const made = (id: string, attempt: number) => ({ ...revision(id, 2, ['b', 'a']), attempt })
      await store(revision('a', 3, ['c', 'b', 'a']), revision('b', 2, ['b', 'a']))
      for (const id of ['a', 'b']) {
        assert.deepEqual(await store(made(id, 1)), [])
        assert.deepEqual(await store(made(id, 2)), [0])
        assert.deepEqual(await store(made(id, 1)), [])
      }
      await store(revision('b', 3, ['c', 'b', 'a']))
      assert.deepEqual(await store(made('b', 2), made('b', 1)), [0])
    })

    it('are revisions of another attempt that the same call has just replaced', async () => {
      const leaf = revision('a', 2, ['b', 'a'])
      await store({ ...leaf, attempt: 1 })
      assert.deepEqual(await store(revision('a', 3, ['c', 'b', 'a']), { ...leaf, attempt: 2 }), [1])
      assert.deepEqual(await fixture.leaves('a'), ['3-c'])
    })

    it('are not revisions that are made again after a purge', async () => {
      const made = { ...revision('a', 2, ['b', 'a']), purges: ['u'] }
      const successor = revision('a', 3, ['c', 'b', 'a'])
      await store({ ...made, attempt: 1 }, successor)
      await fixture.replica.purgeDocuments({ purges: [{ uuid: 'u', id: 'a', paths: [successor.path] }] }, context)
      // The new successor arrives first.
      await store({ ...successor, purges: ['u'] })
      assert.deepEqual(await store({ ...made, attempt: 2 }), [])
      assert.deepEqual(await store({ ...made, attempt: 3 }), [0])
    })
  })
}
