import assert from 'node:assert/strict'
import type { StoreRevisionsReply } from '../contracts/shard-replica.ts'
import { noRivals } from '../contracts/shard-replica.ts'
import { revisionHash } from '../revisions/revision-hash.ts'
import { documentLeavesMax } from '../revisions/revision-tree.ts'
import {
  bytes, context, documentEdit, type ReplicaFixture, revision, revisionFrom, revsLimit, text,
} from './replica-fixture.ts'

export function editCases(fixture: ReplicaFixture): void {
  describe('editing', () => {
    it('creates a document under the hash that the caller computed', async () => {
      const edit = documentEdit('doc', { a: 1 })
      const outcome = await fixture.edit(edit)
      assert.deepEqual(outcome, { kind: 'updated', path: { start: 1, ids: [edit.revisionHash] } })
      const snapshot = await fixture.open('doc')
      assert.deepEqual(snapshot.leaves, [{ revision: `1-${edit.revisionHash}`, deleted: false }])
      assert.equal(text(snapshot.body), '{"a":1}')
    })

    it('keeps body bytes as they are', async () => {
      const body = bytes('{"n":12345678901234567890,"x":1.0,"1":"\\ud800","0":{ } }')
      const hash = revisionHash({ deleted: false, parent: null, body })
      await fixture.edit({ id: 'doc', parent: null, deleted: false, body, revisionHash: hash })
      assert.deepEqual(Buffer.from((await fixture.open('doc')).body!), Buffer.from(body))
    })

    it('replaces a leaf and answers with the whole path', async () => {
      const first = await fixture.write('doc', { v: 1 })
      const outcome = await fixture.edit(documentEdit('doc', { v: 2 }, first))
      assert.equal(outcome.kind, 'updated')
      assert.deepEqual(
        outcome.kind === 'updated' && { start: outcome.path.start, parents: outcome.path.ids.slice(1) },
        { start: 2, parents: [first.slice(2)] },
      )
      assert.deepEqual(await fixture.leaves('doc'), [revisionFrom(outcome)])
    })

    it('refuses a second creation, a stale parent and an unknown parent', async () => {
      const first = await fixture.write('doc', { v: 1 })
      const second = await fixture.write('doc', { v: 2 }, first)
      assert.deepEqual(await fixture.edit(documentEdit('doc', { v: 3 })), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(documentEdit('doc', { v: 3 }, first)), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(documentEdit('doc', { v: 3 }, '2-abc')), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(documentEdit('never', { v: 1 }, first)), { kind: 'conflict' })
      assert.deepEqual(await fixture.leaves('doc'), [second])
      assert.equal(await fixture.replica.openDocument({ id: 'never', body: false, tree: false }, context), null)
    })

    it('extends a losing branch and makes it the winner', async () => {
      await fixture.store(revision('doc', 1, ['bb']), revision('doc', 1, ['aa']))
      const next = await fixture.write('doc', { v: 2 }, '1-aa')
      assert.deepEqual(await fixture.leaves('doc'), [next, '1-bb'])
    })

    it('keeps the last revsLimit revisions of a branch', async () => {
      let parent = await fixture.write('doc', { v: 0 })
      const all = [parent]
      for (let v = 1; v < 5; v++) {
        parent = revisionFrom(await fixture.edit(documentEdit('doc', { v }, parent), 3))
        all.unshift(parent)
      }
      const { tree } = await fixture.open('doc')
      assert.deepEqual(tree?.[0]?.path, { start: 5, ids: all.slice(0, 3).map(kept => kept.slice(2)) })
      assert.equal((await fixture.openRevisions('doc', [all[4]!]))[0]?.kind, 'missing')
    })
  })
}

export function orderCases(fixture: ReplicaFixture): void {
  describe('editing at the same time', () => {
    it('lets exactly one of many concurrent edits win', async () => {
      const first = await fixture.write('doc', {})
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, v) => fixture.edit(documentEdit('doc', { v }, first))),
      )
      assert.equal(outcomes.filter(outcome => outcome.kind === 'updated').length, 1)
      assert.equal((await fixture.leaves('doc')).length, 1)
      const creations = await Promise.all(
        Array.from({ length: 20 }, (_, v) => fixture.edit(documentEdit('new', { v }))),
      )
      assert.equal(creations.filter(outcome => outcome.kind === 'updated').length, 1)
    })

    it('takes edits of one document in one call one after the other', async () => {
      const creation = documentEdit('doc', { v: 1 })
      const first = `1-${creation.revisionHash}`
      const outcomes = await fixture.edits([
        creation, documentEdit('doc', { v: 'again' }), documentEdit('doc', { v: 2 }, first), documentEdit('other', {}),
      ])
      assert.deepEqual(outcomes.map(outcome => outcome.kind), ['updated', 'conflict', 'updated', 'updated'])
      assert.equal(text((await fixture.open('doc')).body), '{"v":2}')
    })
  })
}

export function tombstoneCases(fixture: ReplicaFixture): void {
  describe('deleting', () => {
    it('leaves a tombstone that can still be opened', async () => {
      const first = await fixture.write('doc', { v: 1 })
      const gone = revisionFrom(await fixture.edit(documentEdit('doc', { why: 'spam' }, first, true)))
      const snapshot = await fixture.open('doc')
      assert.deepEqual(snapshot.leaves, [{ revision: gone, deleted: true }])
      assert.equal(text(snapshot.body), '{"why":"spam"}')
    })

    it('revives a tombstone by an edit without parent, on top of it and with a hash of its own', async () => {
      const gone = await fixture.delete('doc', await fixture.write('doc', { life: 1 }))
      const edit = documentEdit('doc', { life: 2 })
      const revived = revisionFrom(await fixture.edit(edit))
      assert.equal(revived, `3-${revisionHash({ deleted: false, parent: gone, body: edit.body })}`)
      const { leaves, tree } = await fixture.open('doc')
      assert.deepEqual(leaves, [{ revision: revived, deleted: false }])
      assert.deepEqual(tree?.[0]?.path.ids.length, 3)
      assert.deepEqual(tree?.[0]?.tombstones, [false, true, false])
    })

    it('revives the winning tombstone of several', async () => {
      await fixture.store(
        revision('doc', 2, ['bb', 'aa'], { deleted: true }), revision('doc', 3, ['ee', 'dd', 'cc'], { deleted: true }),
      )
      const revived = await fixture.write('doc', { life: 2 })
      assert.match(revived, /^4-/)
      assert.deepEqual(await fixture.leaves('doc'), [revived, '-2-bb'])
    })

    it('refuses an edit that names a tombstone, a second deletion, and a deletion without parent', async () => {
      const gone = await fixture.delete('doc', await fixture.write('doc', {}))
      assert.deepEqual(await fixture.edit(documentEdit('doc', { v: 2 }, gone)), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(documentEdit('doc', {}, gone, true)), { kind: 'conflict' })
      assert.deepEqual(await fixture.edit(documentEdit('doc', {}, null, true)), { kind: 'conflict' })
      assert.deepEqual(await fixture.leaves('doc'), [`-${gone}`])
    })

    it('moves the document from the live to the deleted count and back', async () => {
      const counts = async (): Promise<number[]> => {
        const { documentCount, deletedCount } = await fixture.replica.upkeep.replicaInfo(context)
        return [documentCount, deletedCount]
      }
      const first = await fixture.write('doc', {})
      assert.deepEqual(await counts(), [1, 0])
      await fixture.delete('doc', first)
      assert.deepEqual(await counts(), [0, 1])
      await fixture.write('doc', { again: true })
      assert.deepEqual(await counts(), [1, 0])
    })
  })
}

export function replicatedCases(fixture: ReplicaFixture): void {
  describe('storing revisions from elsewhere', () => {
    it('refuses branches of clients beyond the limit, but not further revisions or branches of replicas', async () => {
      const branch = (id: string, index: number): ReturnType<typeof revision> => revision(id, 1, [`${index}`])
      await fixture.store(...Array.from({ length: documentLeavesMax - 1 }, (_, index) => branch('doc', index)))
      const client = async (...revisions: ReturnType<typeof revision>[]): Promise<StoreRevisionsReply> =>
        fixture.replica.storeRevisions({ revisions, revsLimit, external: true }, context)
      const last = documentLeavesMax - 1
      assert.deepEqual(
        await client(branch('doc', last + 1), branch('doc', last), branch('other', 1)), { rivals: [], refused: [1] },
      )
      assert.deepEqual((await fixture.leaves('doc')).filter(leaf => leaf === `1-${last}`), [])
      assert.deepEqual(await fixture.leaves('other'), ['1-1'])
      assert.deepEqual(await client(branch('doc', 0), revision('doc', 2, ['next', '0'])), noRivals)
      await fixture.store(branch('doc', last))
      assert.equal((await fixture.leaves('doc')).length, documentLeavesMax + 1)
    }).timeout(60_000)

    it('keeps every branch and picks the winner by liveness, generation and hash', async () => {
      await fixture.store(
        revision('doc', 2, ['b2', 'a1']), revision('doc', 2, ['c2', 'a1']),
        revision('doc', 9, ['z9'], { deleted: true }),
      )
      assert.deepEqual(await fixture.leaves('doc'), ['2-c2', '2-b2', '-9-z9'])
      const { body, tree } = await fixture.open('doc')
      assert.equal(text(body), '{"from":"c2"}')
      assert.deepEqual(tree?.map(branch => branch.path), [
        { start: 2, ids: ['c2', 'a1'] }, { start: 2, ids: ['b2', 'a1'] }, { start: 9, ids: ['z9'] },
      ])
      assert.deepEqual(tree?.map(branch => branch.deleted), [false, false, true])
      assert.deepEqual(tree?.[0]?.available, [true, false])
    })

    it('changes nothing when a known revision comes again, leaf or ancestor', async () => {
      const leaf = revision('doc', 3, ['c3', 'b2', 'a1'])
      await fixture.store(leaf)
      const before = await fixture.open('doc')
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      await fixture.store(leaf, leaf)
      await fixture.store(revision('doc', 2, ['b2', 'a1']), revision('doc', 1, ['a1']))
      assert.deepEqual(await fixture.open('doc'), before)
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).sequence, sequence)
    })

    it('stores the body of an ancestor that has none when a client sends it, and does not replace one', async () => {
      const client = async (value: string): Promise<void> => {
        const revisions = [revision('doc', 2, ['b2', 'a1'], { value })]
        await fixture.replica.storeRevisions({ revisions, revsLimit, external: true }, context)
      }
      const ancestor = async (): Promise<unknown> => {
        const [opened] = await fixture.openRevisions('doc', ['2-b2'])
        return opened?.kind === 'found' ? text(opened.revision.body) : opened?.kind
      }
      const sequence = async (): Promise<number> => (await fixture.replica.upkeep.replicaInfo(context)).sequence
      await fixture.store(revision('doc', 3, ['c3', 'b2', 'a1']), revision('doc', 1, ['z1']))
      const before = await sequence()
      await fixture.store(revision('doc', 2, ['b2', 'a1']))
      assert.deepEqual([await ancestor(), await sequence()], ['missing', before])
      await client('first')
      assert.deepEqual([await ancestor(), await sequence()], ['"first"', before + 1])
      await client('second')
      assert.deepEqual([await ancestor(), await sequence()], ['"first"', before + 1])
      const { tree, body } = await fixture.open('doc')
      assert.deepEqual(tree?.map(branch => branch.available), [[true, true, false], [true]])
      assert.equal(text(body), '{"from":"c3"}')
      await fixture.write('doc', { v: 4 }, '3-c3')
      assert.equal(await ancestor(), '"first"')
    })

    it('joins a path at the deepest revision that it shares', async () => {
      await fixture.store(revision('doc', 2, ['b2', 'a1']))
      await fixture.store(revision('doc', 4, ['d4', 'c3', 'b2']))
      const { tree } = await fixture.open('doc')
      assert.deepEqual(tree?.map(branch => branch.path), [{ start: 4, ids: ['d4', 'c3', 'b2', 'a1'] }])
    })

    it('stores what an edit decided under the same revision', async () => {
      const other = await fixture.another()
      const first = await fixture.write('doc', { v: 1 })
      const second = await fixture.write('doc', { v: 2 }, first)
      await other.storeRevisions(
        {
          revisions: [{
            id: 'doc', path: { start: 2, ids: [second.slice(2), first.slice(2)] }, deleted: false,
            body: bytes('{"v":2}'),
          }],
          revsLimit,
        },
        context,
      )
      assert.deepEqual(await fixture.leaves('doc', other), [second])
      assert.equal(text((await fixture.open('doc', other)).body), '{"v":2}')
    })

    it('keeps 32 hex digits and any other hash text', async () => {
      const hex = '967a00dff5e02add41819138abb3284d'
      await fixture.store(revision('doc', 2, [hex, 'Größe-ü']), revision('doc', 1, ['X']))
      assert.deepEqual((await fixture.open('doc')).tree?.map(branch => branch.path), [
        { start: 2, ids: [hex, 'Größe-ü'] }, { start: 1, ids: ['X'] },
      ])
    })

    it('ends with the same leaves whatever the order', async () => {
      const other = await fixture.another()
      const revisions = [
        revision('doc', 1, ['a1']), revision('doc', 2, ['b2', 'a1'], { deleted: true }),
        revision('doc', 2, ['c2', 'a1']),
        revision('doc', 3, ['d3', 'c2', 'a1']), revision('doc', 4, ['e4', 'd3']), revision('doc', 1, ['x1']),
        revision('doc', 5, ['y5', 'z4'], { deleted: true }),
      ]
      await fixture.store(...revisions)
      for (const late of revisions.toReversed()) await other.storeRevisions({ revisions: [late], revsLimit }, context)
      assert.deepEqual(await fixture.leaves('doc'), await fixture.leaves('doc', other))
      assert.deepEqual(
        (await fixture.open('doc')).tree?.map(branch => branch.path),
        (await fixture.open('doc', other)).tree?.map(branch => branch.path),
      )
    })
  })
}
