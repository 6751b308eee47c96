import assert from 'node:assert/strict'
import type { ShardReplica } from '../contracts/shard-replica.ts'
import { collect, context, documentEdit, type ReplicaFixture, revision, revsLimit } from './replica-fixture.ts'

const bucketCount = 16

export function convergenceCases(fixture: ReplicaFixture): void {
  describe('anti-entropy', () => {
    it('never lowers a checkpoint, and keeps one per history', async () => {
      const mark = (history: string, sequence: number): Promise<unknown> =>
        fixture.replica.storeRevisions({ revisions: [], revsLimit, checkpoint: { history, sequence } }, context)
      assert.deepEqual((await fixture.replica.upkeep.replicaInfo(context)).seen, {})
      await mark('north', 10)
      await mark('south', 3)
      await mark('north', 7)
      assert.deepEqual((await fixture.replica.upkeep.replicaInfo(context)).seen, { north: 10, south: 3 })
      await mark('north', 11)
      assert.deepEqual((await fixture.replica.upkeep.replicaInfo(context)).seen, { north: 11, south: 3 })
    })

    it('stores a checkpoint together with its batch', async () => {
      await fixture.replica.storeRevisions(
        { revisions: [revision('doc', 1, ['aa'])], revsLimit, checkpoint: { history: 'north', sequence: 4 } }, context,
      )
      assert.deepEqual(await fixture.leaves('doc'), ['1-aa'])
      assert.deepEqual((await fixture.replica.upkeep.replicaInfo(context)).seen, { north: 4 })
    })

    it('does not stem a document that a call names but does not change', async () => {
      const leaf = revision('doc', 3, ['cc', 'bb', 'aa'])
      await fixture.store(leaf)
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      await fixture.replica.storeRevisions({ revisions: [leaf], revsLimit: 1 }, context)
      await fixture.replica.updateDocuments({ edits: [documentEdit('doc', {})], revsLimit: 1 }, context)
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).sequence, sequence)
      const [branch] = (await fixture.replica.openDocument({ id: 'doc', body: false, tree: true }, context))!.tree!
      assert.deepEqual(branch!.path, leaf.path)
    })

    it('sees no change when a revision adds only ancestors that stemming removes at once', async () => {
      const store = () =>
        fixture.replica.storeRevisions({ revisions: [revision('doc', 3, ['cc', 'bb', 'aa'])], revsLimit: 1 }, context)
      await store()
      const before = await fixture.replica.upkeep.replicaInfo(context)
      await store()
      assert.deepEqual(await fixture.replica.upkeep.replicaInfo(context), before)
    })

    it('keeps the trail of its changes in the changes of others, and translates checkpoints by it', async () => {
      const { replica } = fixture
      const learn = (history: string, base: number, ...pairs: readonly (readonly [number, number])[]) => {
        const points = pairs.map(([theirs, own]) => ({ theirs, own }))
        const trail = { history, base: { theirs: base, own: base }, points }
        return replica.storeRevisions({ revisions: [], revsLimit, trail }, context)
      }
      await learn('north', 0, [10, 3], [20, 8])
      await learn('south', 5, [9, 7])
      await learn('north', 8, [15, 12], [40, 13])
      const follow = (...read: readonly (readonly [string, number])[]): Promise<number> =>
        replica.translateCheckpoints(read.map(([history, sequence]) => ({ history, sequence })), context)
      assert.deepEqual(await Promise.all([9, 10, 19, 20, 39, 40, 1000].map(sequence => follow(['north', sequence]))), [
        0, 3, 3, 12, 12, 13, 13,
      ])
      assert.deepEqual(await Promise.all([4, 5, 9].map(sequence => follow(['south', sequence]))), [0, 5, 7])
      assert.deepEqual(
        [await follow(['west', 100]), await follow(), await follow(['north', 10], ['south', 5], ['west', 1])],
        [0, 0, 5],
      )
      const { sequence, seen } = await replica.upkeep.replicaInfo(context)
      assert.deepEqual([sequence, seen], [0, {}])
    })

    it('gives each store another history', async () => {
      const other = await fixture.another()
      const history = async ({ upkeep }: ShardReplica): Promise<string> => (await upkeep.replicaInfo(context)).history
      assert.notEqual(await history(fixture.replica), await history(other))
      assert.equal(await history(fixture.replica), await history(fixture.replica))
    })

    it('brings a fresh replica up by changes, missing revisions and their bodies', async () => {
      const other = await fixture.another()
      await fixture.edits(Array.from({ length: 30 }, (_, i) => documentEdit(`doc${i}`, { i })))
      for (let i = 0; i < 10; i++) {
        await fixture.write(`doc${i}`, { i, again: true }, (await fixture.leaves(`doc${i}`))[0]!)
      }
      await fixture.delete('doc3', (await fixture.leaves('doc3'))[0]!)
      await fixture.store(revision('doc4', 5, ['ee', 'dd']))
      await copyChanges(fixture.replica, other)
      assert.deepEqual(
        await other.upkeep.digestDocuments(bucketCount, context),
        await fixture.replica.upkeep.digestDocuments(bucketCount, context),
      )
      for (let i = 0; i < 30; i++) {
        const [mine, theirs] = [await fixture.open(`doc${i}`), await fixture.open(`doc${i}`, other)]
        assert.deepEqual(theirs.tree?.map(branch => branch.path), mine.tree?.map(branch => branch.path))
        assert.deepEqual(Buffer.from(theirs.body!), Buffer.from(mine.body!))
      }
      const { history, sequence } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual((await other.upkeep.replicaInfo(context)).seen, { [history]: sequence })
    })
  })
}

/** The simplest form of anti-entropy. */
async function copyChanges(source: ShardReplica, target: ShardReplica): Promise<void> {
  const { history, sequence } = await source.upkeep.replicaInfo(context)
  const rows = await collect(source.scanChanges({ since: 0, descending: false, body: false, locals: false }, context))
  const diffs = await target.diffRevisions(
    rows.map(row => ({ id: row.id, revisions: row.leaves.map(leaf => leaf.revision) })), context,
  )
  const opened = await source.openRevisions(
    diffs.map(diff => ({ id: diff.id, revisions: diff.missing, latest: false })), context,
  )
  const revisions = opened.flat()
    .map(entry => entry.kind === 'found' ? entry.revision : assert.fail(`${entry.revision} has lost its body`))
  await target.storeRevisions({ revisions, revsLimit, checkpoint: { history, sequence } }, context)
}

export function digestCases(fixture: ReplicaFixture): void {
  describe('digests', () => {
    it('are equal for equal leaves, whatever the order of writing', async () => {
      const other = await fixture.another()
      const revisions = Array.from({ length: 60 }, (_, i) => [
        revision(`doc${i}`, 2, ['b2', 'a1'], { deleted: i % 3 === 0 }), revision(`doc${i}`, 1, [`c${i % 5}`]),
      ]).flat()
      await fixture.store(...revisions)
      await other.storeRevisions({ revisions: revisions.toReversed(), revsLimit }, context)
      assert.deepEqual(
        await fixture.replica.upkeep.digestDocuments(bucketCount, context),
        await other.upkeep.digestDocuments(bucketCount, context),
      )
    })

    it('differ in the bucket where leaves differ', async () => {
      const other = await fixture.another()
      const same = Array.from({ length: 40 }, (_, i) => revision(`doc${i}`, 1, ['aa']))
      for (const replica of [fixture.replica, other]) {
        await replica.storeRevisions({ revisions: same, revsLimit }, context)
      }
      await fixture.store(revision('doc7', 1, ['bb']))
      const mine = await fixture.replica.upkeep.digestDocuments(bucketCount, context)
      const theirs = await other.upkeep.digestDocuments(bucketCount, context)
      const differing = mine.flatMap((digest, bucket) => digest === theirs[bucket] ? [] : [bucket])
      assert.equal(differing.length, 1)
      const bucket = differing[0]!
      const rows = await collect(fixture.replica.upkeep.scanDigestBucket({ bucketCount, bucket }, context))
      assert.deepEqual(rows.find(row => row.id === 'doc7')?.leaves.map(leaf => leaf.revision), ['1-bb', '1-aa'])
    })

    it('distinguish leaves of the same generation', async () => {
      const other = await fixture.another()
      await fixture.store(revision('doc', 2, ['b1', 'aa']))
      await other.storeRevisions({ revisions: [revision('doc', 2, ['b2', 'aa'])], revsLimit }, context)
      assert.notDeepEqual(
        await fixture.replica.upkeep.digestDocuments(1, context), await other.upkeep.digestDocuments(1, context),
      )
    })

    it('list their documents in the byte order of ids', async () => {
      const ids = ['a', 'Z', 'b0', 'b', 'é', '\u{1F600}', '\uFFFD', '~']
      await fixture.edits(ids.map(id => documentEdit(id, {})))
      const rows = await collect(fixture.replica.upkeep.scanDigestBucket({ bucketCount: 1, bucket: 0 }, context))
      assert.deepEqual(
        rows.map(row => row.id), ids.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))),
      )
    })

    it('distinguish a tombstone from a live leaf of the same revision', async () => {
      const other = await fixture.another()
      await fixture.store(revision('doc', 1, ['aa']))
      await other.storeRevisions({ revisions: [revision('doc', 1, ['aa'], { deleted: true })], revsLimit }, context)
      assert.notDeepEqual(
        await fixture.replica.upkeep.digestDocuments(1, context), await other.upkeep.digestDocuments(1, context),
      )
    })

    it('put every document, deleted or not, into exactly one bucket', async () => {
      await fixture.store(
        ...Array.from({ length: 50 }, (_, i) => revision(`doc${i}`, 1, ['aa'], { deleted: i % 2 === 0 })),
      )
      const seen: string[] = []
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        for (const row of await collect(fixture.replica.upkeep.scanDigestBucket({ bucketCount, bucket }, context))) {
          seen.push(row.id)
          assert.deepEqual(row.leaves, (await fixture.open(row.id)).leaves)
        }
      }
      assert.equal(seen.length, 50)
      assert.equal(new Set(seen).size, 50)
    })
  })
}
