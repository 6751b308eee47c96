import assert from 'node:assert/strict'
import {
  assertFails, collect, context, documentEdit, type ReplicaFixture, revision, revsLimit,
} from './replica-fixture.ts'

export function callCases(fixture: ReplicaFixture): void {
  describe('calls', () => {
    it('reject as cancelled when the signal has aborted', async () => {
      const { replica } = fixture
      const cancelled = { ...context, signal: AbortSignal.abort() }
      await assertFails(replica.openDocument({ id: 'doc', body: true, tree: true }, cancelled), 'cancelled')
      await assertFails(replica.openRevisions([], cancelled), 'cancelled')
      await assertFails(
        replica.updateDocuments({ edits: [documentEdit('doc', {})], revsLimit }, cancelled), 'cancelled',
      )
      await assertFails(
        replica.storeRevisions({ revisions: [revision('doc', 1, ['aa'])], revsLimit }, cancelled), 'cancelled',
      )
      await assertFails(replica.diffRevisions([], cancelled), 'cancelled')
      await assertFails(replica.countDocuments({ descending: false }, cancelled), 'cancelled')
      await assertFails(replica.openLocalDocuments([], cancelled), 'cancelled')
      await assertFails(
        replica.updateLocalDocument({ id: 'x', revision: 1, body: null, mustExist: false }, cancelled), 'cancelled',
      )
      await assertFails(replica.upkeep.replicaInfo(cancelled), 'cancelled')
      await assertFails(replica.upkeep.digestDocuments(1, cancelled), 'cancelled')
      assert.equal(await replica.openDocument({ id: 'doc', body: false, tree: false }, context), null)
    })

    it('that name another history of the replica are refused, and do nothing', async () => {
      const { replica } = fixture
      const first = await fixture.write('doc', { v: 1 })
      const before = await replica.upkeep.replicaInfo(context)
      const other = { ...context, history: 'another' }
      const leaves = [{ id: 'doc', revisions: [first] }]
      const purge = { uuid: 'p', id: 'doc', paths: [{ start: 1, ids: [first.slice(2)] }] }
      const at = { history: 'peer', sequence: 9 }
      await assertFails(replica.upkeep.replicaInfo(other), 'other_history')
      await assertFails(replica.openDocument({ id: 'doc', body: true, tree: true }, other), 'other_history')
      await assertFails(
        replica.openRevisions([{ id: 'doc', revisions: 'leaves', latest: false }], other), 'other_history',
      )
      await assertFails(replica.diffRevisions(leaves, other), 'other_history')
      await assertFails(replica.openLocalDocuments(['x'], other), 'other_history')
      await assertFails(replica.waitForChange({ history: '', sequence: 0 }, other), 'other_history')
      await assertFails(replica.upkeep.digestDocuments(1, other), 'other_history')
      await assertFails(
        collect(replica.scanChanges({ since: 0, descending: false, body: false, locals: true }, other)),
        'other_history',
      )
      await assertFails(collect(replica.scanPurges(0, other)), 'other_history')
      await assertFails(collect(replica.upkeep.scanDigestBucket({ bucketCount: 1, bucket: 0 }, other)), 'other_history')
      await assertFails(
        replica.updateDocuments({ edits: [documentEdit('new', {})], revsLimit }, other), 'other_history',
      )
      await assertFails(
        replica.storeRevisions({ revisions: [revision('new', 1, ['aa'])], revsLimit, checkpoint: at }, other),
        'other_history',
      )
      await assertFails(replica.storeRevisions({ revisions: [], revsLimit, checkpoint: at }, other), 'other_history')
      await assertFails(replica.purgeDocuments({ purges: [purge], checkpoint: at }, other), 'other_history')
      assert.deepEqual(await replica.upkeep.replicaInfo(context), before)
    })

    it('that name the current history of the replica are answered', async () => {
      const { replica } = fixture
      const { history } = await replica.upkeep.replicaInfo(context)
      const own = { ...context, history }
      const checkpoint = { history: 'peer', sequence: 9 }
      await replica.storeRevisions({ revisions: [revision('doc', 1, ['aa'])], revsLimit, checkpoint }, own)
      assert.deepEqual((await replica.upkeep.replicaInfo(own)).seen, { peer: 9 })
      assert.equal(
        (await collect(replica.scanChanges({ since: 0, descending: false, body: false, locals: true }, own))).length, 1,
      )
    })

    it('reject scans as cancelled, also between pages', async () => {
      const { replica } = fixture
      await fixture.edits(Array.from({ length: 3000 }, (_, i) => documentEdit(`doc${i}`, { i, text: 'x'.repeat(200) })))
      const scans: ((signal: AbortSignal) => AsyncIterable<readonly unknown[]>)[] = [
        signal => replica.scanDocuments({ descending: false, body: true, leaves: true }, { ...context, signal }),
        signal =>
          replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, { ...context, signal }),
      ]
      for (const scan of scans) {
        await assertFails(collect(scan(AbortSignal.abort())), 'cancelled')
        const controller = new AbortController()
        const reading = (async () => {
          for await (const page of scan(controller.signal)) {
            assert(page.length > 0)
            controller.abort()
          }
        })()
        await assertFails(reading, 'cancelled')
      }
    })

    it('carry sizes that grow with what is stored', async () => {
      const before = (await fixture.replica.upkeep.replicaInfo(context)).sizes
      await fixture.write('doc', { text: 'x'.repeat(10_000) })
      const { sizes, purgeSequence, catchingUp } = await fixture.replica.upkeep.replicaInfo(context)
      assert(sizes.external >= before.external + 10_000)
      assert(sizes.active > before.active)
      assert(sizes.file >= 0)
      assert.equal(purgeSequence, 0)
      assert.equal(catchingUp, false)
    })
  })
}
