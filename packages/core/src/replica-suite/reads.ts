import assert from 'node:assert/strict'
import { openedBytesMax } from '../contracts/shard-replica.ts'
import { context, documentEdit, type ReplicaFixture, revision, text } from './replica-fixture.ts'

export function readCases(fixture: ReplicaFixture): void {
  describe('opening', () => {
    it('returns null for a document that never existed', async () => {
      assert.equal(await fixture.replica.openDocument({ id: 'never', body: true, tree: true }, context), null)
    })

    it('returns body and tree only when requested', async () => {
      await fixture.write('doc', { a: 1 })
      const lean = await fixture.replica.openDocument({ id: 'doc', body: false, tree: false }, context)
      assert.equal(lean?.body, undefined)
      assert.equal(lean?.tree, undefined)
      assert.equal(lean?.leaves.length, 1)
      const full = await fixture.open('doc')
      assert.equal(text(full.body), '{"a":1}')
      assert.equal(full.tree?.length, 1)
    })

    it('sees a write as soon as it is confirmed, under a higher sequence', async () => {
      const first = await fixture.write('doc', { v: 1 })
      const before = await fixture.open('doc')
      await fixture.write('doc', { v: 2 }, first)
      const after = await fixture.open('doc')
      assert.equal(text(after.body), '{"v":2}')
      assert(after.sequence > before.sequence)
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).sequence, after.sequence)
    })

    it('accepts ids of every form', async () => {
      const ids = ['_design/app', 'a/b', 'a b', '100%', '"quoted"', 'été', '😀', 'a\u0000b', 'x'.repeat(2000)]
      for (const id of ids) await fixture.write(id, { id })
      for (const id of ids) assert.equal(text((await fixture.open(id)).body), JSON.stringify({ id }))
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).documentCount, ids.length)
    })

    it('accepts bodies of a megabyte', async () => {
      const value = { text: 'é'.repeat(500_000) }
      await fixture.write('large', value)
      assert.equal(text((await fixture.open('large')).body), JSON.stringify(value))
    })
  })

  describe('opening revisions', () => {
    it('returns named revisions in their order, unknown ones as missing', async () => {
      const first = await fixture.write('doc', { v: 1 })
      const second = await fixture.write('doc', { v: 2 }, first)
      const opened = await fixture.openRevisions('doc', ['7-none', first, second])
      assert.deepEqual(opened[0], { kind: 'missing', revision: '7-none' })
      assert.deepEqual(opened.slice(1).map(entry => entry.kind === 'found' && text(entry.revision.body)), [
        '{"v":1}', '{"v":2}',
      ])
      assert.deepEqual(opened[2]?.kind === 'found' && opened[2].revision.path, {
        start: 2, ids: [second.slice(2), first.slice(2)],
      })
    })

    it('returns all leaves, winner first, tombstones included', async () => {
      await fixture.store(
        revision('doc', 1, ['aa']), revision('doc', 3, ['cc', 'bb', 'aa'], { deleted: true }),
        revision('doc', 2, ['dd', 'aa']),
      )
      const opened = await fixture.openRevisions('doc', 'leaves')
      assert.deepEqual(
        opened.map(entry =>
          entry.kind === 'found' && [entry.revision.path.start, entry.revision.path.ids[0], entry.revision.deleted]),
        [[2, 'dd', false], [3, 'cc', true]],
      )
    })

    it('replaces a revision by the leaves that descend from it when the latest are requested', async () => {
      await fixture.store(
        revision('doc', 2, ['b2', 'a1']), revision('doc', 2, ['c2', 'a1']), revision('doc', 1, ['x1']),
      )
      const names = (await fixture.openRevisions('doc', ['1-a1', '1-x1', '9-none'], true)).map(entry =>
        entry.kind === 'found' ? entry.revision.path.ids[0] : entry.revision)
      assert.deepEqual(names, ['c2', 'b2', 'x1', '9-none'])
    })

    it('returns missing for an ancestor that arrived without a body', async () => {
      await fixture.store(revision('doc', 2, ['b2', 'a1']))
      assert.deepEqual(await fixture.openRevisions('doc', ['1-a1']), [{ kind: 'missing', revision: '1-a1' }])
    })

    it('answers for unknown documents: no leaves, named revisions missing', async () => {
      assert.deepEqual(await fixture.openRevisions('never', 'leaves'), [])
      assert.deepEqual(await fixture.openRevisions('never', ['1-a']), [{ kind: 'missing', revision: '1-a' }])
    })

    it('answers several documents in their order', async () => {
      await fixture.edits([documentEdit('a', { id: 'a' }), documentEdit('b', { id: 'b' })])
      const requests = ['b', 'never', 'a'].map(id => ({ id, revisions: 'leaves' as const, latest: false }))
      const answers = await fixture.replica.openRevisions(requests, context)
      assert.deepEqual(
        answers.map(answer => answer.map(entry => entry.kind === 'found' && text(entry.revision.body))),
        [['{"id":"b"}'], [], ['{"id":"a"}']],
      )
    })

    it('answers in order up to the limit of a reply, and the first request whatever its size', async () => {
      const sizes: Readonly<Record<string, number>> = {
        huge: 3 * openedBytesMax, a: 1, b: openedBytesMax * 0.6, c: openedBytesMax * 0.6, d: 1, e: 1,
      }
      for (const [id, size] of Object.entries(sizes)) await fixture.write(id, { text: 'x'.repeat(size) })
      const answered = async (...ids: string[]) => {
        const answers = await fixture.replica.openRevisions(
          ids.map(id => ({ id, revisions: 'leaves' as const, latest: false })), context,
        )
        return answers.map(([entry], index) =>
          entry?.kind === 'found' && entry.revision.id === ids[index]).filter(Boolean).length
      }
      assert.equal(await answered('huge', 'a', 'd'), 1)
      assert.equal(await answered('a', 'huge', 'd'), 2)
      assert.equal(await answered('a', 'b', 'c', 'd', 'e'), 3)
      assert.equal(await answered('d', 'e'), 2)
      assert.equal(await answered('a', 'b', 'd', 'e', 'a'), 5)
    })
  })

  describe('diffing revisions', () => {
    it('names the missing revisions and the leaves that might be their ancestors', async () => {
      await fixture.store(revision('doc', 3, ['c3', 'b2', 'a1']), revision('doc', 2, ['x2', 'a1'], { deleted: true }))
      const { sequence } = await fixture.open('doc')
      const ask = async (...revisions: string[]) =>
        (await fixture.replica.diffRevisions([{ id: 'doc', revisions }], context))[0]
      assert.deepEqual(await ask('4-d4', '3-c3'), {
        id: 'doc', missing: ['4-d4'], possibleAncestors: ['2-x2', '3-c3'], sequence, otherLeaves: true,
      })
      assert.deepEqual(await ask('3-zz'), {
        id: 'doc', missing: ['3-zz'], possibleAncestors: ['2-x2'], sequence, otherLeaves: true,
      })
      assert.deepEqual(await ask('2-zz'), {
        id: 'doc', missing: ['2-zz'], possibleAncestors: [], sequence, otherLeaves: true,
      })
      assert.deepEqual(await ask('1-a1', '2-b2', '2-x2'), {
        id: 'doc', missing: [], possibleAncestors: [], sequence, otherLeaves: true,
      })
      assert.deepEqual(await ask('2-x2', '3-c3'), {
        id: 'doc', missing: [], possibleAncestors: [], sequence, otherLeaves: false,
      })
    })

    it('names every revision of an unknown document as missing', async () => {
      await fixture.write('known', {})
      const answers = await fixture.replica.diffRevisions(
        [{ id: 'never', revisions: ['1-a', '2-b'] }, { id: 'known', revisions: [] }], context,
      )
      assert.deepEqual(answers, [
        { id: 'never', missing: ['1-a', '2-b'], possibleAncestors: [], sequence: 0, otherLeaves: false },
        { id: 'known', missing: [], possibleAncestors: [], sequence: 1, otherLeaves: true },
      ])
    })
  })
}
