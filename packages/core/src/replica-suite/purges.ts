import assert from 'node:assert/strict'
import type { ChangeRow, Purge, PurgeRow, RevisionPath, ScanChangesRequest } from '../contracts/shard-replica.ts'
import {
  assertFails, collect, context, documentEdit, type ReplicaFixture, revision, revsLimit,
} from './replica-fixture.ts'

function purge(uuid: string, id: string, ...paths: RevisionPath[]): Purge {
  return { uuid, id, paths }
}

export function purgeCases(fixture: ReplicaFixture): void {
  const apply = async (...purges: Purge[]): Promise<readonly (readonly string[])[]> =>
    fixture.replica.purgeDocuments({ purges }, context)
  const changes = async (): Promise<string[]> => {
    const everyChange = { since: 0, descending: false, body: false, locals: false }
    return (await collect(fixture.replica.scanChanges(everyChange, context))).map(row => row.id)
  }
  const recorded = (since = 0): Promise<PurgeRow[]> => collect(fixture.replica.scanPurges(since, context))
  const isThere = async (id: string): Promise<boolean> =>
    await fixture.replica.openDocument({ id, body: false, tree: false }, context) !== null

  describe('purges', () => {
    it('are named by the outcome of an edit that makes a purged revision again', async () => {
      const edits = [documentEdit('doc', { again: true })]
      const update = async (): Promise<unknown> => fixture.replica.updateDocuments({ edits, revsLimit: 10 }, context)
      const path = { start: 1, ids: [edits[0]!.revisionHash] }
      assert.deepEqual(await update(), { kind: 'decided', outcomes: [{ kind: 'updated', path }] })
      await fixture.replica.purgeDocuments({ purges: [{ uuid: 'purge', id: 'doc', paths: [path] }] }, context)
      assert.deepEqual(await update(), { kind: 'decided', outcomes: [{ kind: 'updated', path, purges: ['purge'] }] })
    })

    it('remove a document completely when they name all its leaves, also from the changes', async () => {
      await fixture.store(
        revision('doc', 2, ['b', 'a']), revision('doc', 2, ['c', 'a'], { deleted: true }), revision('other', 1, ['x']),
      )
      assert.deepEqual(
        await apply(purge('u1', 'doc', { start: 2, ids: ['b'] }, { start: 2, ids: ['c'] })), [['2-b', '2-c']],
      )
      assert.equal(await isThere('doc'), false)
      assert.deepEqual(await changes(), ['other'])
      const { documentCount, deletedCount, purgeSequence } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual([documentCount, deletedCount, purgeSequence], [1, 0, 1])
      assert.deepEqual(await fixture.openRevisions('doc', ['2-b']), [{ kind: 'missing', revision: '2-b' }])
    })

    it('keep the other branches, and give the document a new sequence', async () => {
      await fixture.store(
        revision('doc', 3, ['c', 'b', 'a']), revision('doc', 2, ['d', 'a']), revision('other', 1, ['x']),
      )
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual(await apply(purge('u1', 'doc', { start: 3, ids: ['c'] })), [['3-c']])
      const { tree, sequence: moved } = await fixture.open('doc')
      assert.deepEqual(tree!.map(branch => branch.path), [{ start: 2, ids: ['d', 'a'] }])
      assert(moved > sequence)
      assert.deepEqual(await changes(), ['other', 'doc'])
    })

    it('ignore revisions with children and unknown revisions, but are recorded', async () => {
      await fixture.store(revision('doc', 2, ['b', 'a']))
      const purges = [
        purge('u1', 'doc', { start: 1, ids: ['a'] }), purge('u2', 'doc', { start: 5, ids: ['x'] }),
        purge('u3', 'none', { start: 1, ids: ['a'] }),
      ]
      assert.deepEqual(await apply(...purges), [[], [], []])
      assert.deepEqual(await fixture.leaves('doc'), ['2-b'])
      assert.deepEqual(await recorded(), purges.map((each, index) => ({ ...each, sequence: index + 1 })))
      assert.deepEqual((await recorded(2)).map(({ uuid }) => uuid), ['u3'])
    })

    it('remove ancestors that are leaves on a lagging replica', async () => {
      await fixture.store(revision('doc', 1, ['a']))
      await apply(purge('u1', 'doc', { start: 2, ids: ['b', 'a'] }))
      assert.equal(await isThere('doc'), false)
    })

    it('are applied once, however often they are sent', async () => {
      await fixture.store(revision('doc', 1, ['a']))
      const once = purge('u1', 'doc', { start: 1, ids: ['a'] })
      await apply(once)
      await fixture.replica.storeRevisions(
        { revisions: [revision('doc', 1, ['a'])], revsLimit, external: true }, context,
      )
      assert.deepEqual(await apply(once), [[]])
      assert.deepEqual(await fixture.leaves('doc'), ['1-a'])
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).purgeSequence, 1)
    })

    it('increase the sequence, so that cached answers become invalid', async () => {
      await fixture.store(revision('doc', 1, ['a']))
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      await apply(purge('u1', 'doc', { start: 1, ids: ['a'] }))
      assert((await fixture.replica.upkeep.replicaInfo(context)).sequence > sequence)
    })

    it('are not undone by a sender that has not applied them', async () => {
      await apply(purge('u1', 'doc', { start: 2, ids: ['b', 'a'] }))
      await fixture.store(revision('doc', 2, ['b', 'a']), revision('doc', 1, ['a']))
      assert.equal(await isThere('doc'), false)
      await fixture.store({ ...revision('doc', 2, ['b', 'a']), purges: ['u1'] })
      assert.deepEqual(await fixture.leaves('doc'), ['2-b'])
      const [opened] = await fixture.openRevisions('doc', ['2-b'])
      assert.deepEqual(opened!.kind === 'found' && opened!.revision.purges, ['u1'])
    })

    it('allow the same edit to be made again, and the outcome names the purge that it follows', async () => {
      const first = await fixture.write('doc', { n: 1 })
      await apply(purge('u1', 'doc', { start: 1, ids: [first.slice(2)] }))
      assert.equal(await fixture.write('doc', { n: 1 }), first)
      const [opened] = await fixture.openRevisions('doc', [first])
      assert.deepEqual(opened!.kind === 'found' && opened!.revision.purges, ['u1'])
      const other = await fixture.write('free', { n: 1 })
      const [free] = await fixture.openRevisions('free', [other])
      assert.equal(free!.kind === 'found' && free!.revision.purges, undefined)
    })

    it('are trimmed up to a sequence', async () => {
      await apply(
        purge('u1', 'doc', { start: 1, ids: ['a'] }), purge('u2', 'doc', { start: 1, ids: ['b'] }),
        purge('u3', 'other', { start: 1, ids: ['a'] }),
      )
      assert.equal((await fixture.replica.upkeep.replicaInfo(context)).oldestPurge, 1)
      await fixture.replica.trimPurges(1, context)
      assert.deepEqual((await recorded()).map(({ uuid }) => uuid), ['u2', 'u3'])
      await fixture.replica.trimPurges(3, context)
      const { oldestPurge, purgeSequence } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual([await recorded(), oldestPurge, purgeSequence], [[], 0, 3])
    })

    it('keep a checkpoint for each history, which never decreases', async () => {
      const mark = (history: string, sequence: number, ...purges: Purge[]): Promise<unknown> =>
        fixture.replica.purgeDocuments({ purges, checkpoint: { history, sequence } }, context)
      await mark('north', 5, purge('u1', 'doc', { start: 1, ids: ['a'] }))
      await mark('north', 3)
      await mark('south', 1)
      const { purgesSeen, seen } = await fixture.replica.upkeep.replicaInfo(context)
      assert.deepEqual([purgesSeen, seen], [{ north: 5, south: 1 }, {}])
    })
  })
}

const everyPurge: ScanChangesRequest = { since: 0, descending: false, body: false, locals: false, purges: true }

/** A reader of changes with purges. It keeps the last row of each document, by id, and removes purged documents. */
class Mirror {
  readonly #fixture: ReplicaFixture
  readonly leaves = new Map<string, readonly string[]>()
  sequence = 0

  constructor(fixture: ReplicaFixture) {
    this.#fixture = fixture
  }

  /** @returns the ids of the rows; purged ones have a minus sign as prefix */
  async read(limit?: number): Promise<string[]> {
    const { history } = await this.#fixture.replica.upkeep.replicaInfo(context)
    const request = { ...everyPurge, since: this.sequence, body: true, ...(limit !== undefined && { limit }) }
    const rows = await collect(this.#fixture.replica.scanChanges(request, { ...context, history }))
    for (const { id, sequence, leaves, purged, body } of rows) {
      assert(sequence > this.sequence)
      assert.deepEqual([leaves.length === 0, body === undefined], [purged === true, purged === true])
      this.sequence = sequence
      if (purged) this.leaves.delete(id)
      else this.leaves.set(id, leaves.map(leaf => leaf.revision))
    }
    return rows.map(({ id, purged }) => `${purged ? '-' : ''}${id}`)
  }
}

export function purgeOrderCases(fixture: ReplicaFixture): void {
  const apply = (uuid: string, id: string, hash: string): Promise<unknown> =>
    fixture.replica.purgeDocuments({ purges: [purge(uuid, id, { start: 1, ids: [hash] })] }, context)
  const scanFrom = (since: number): Promise<ChangeRow[]> =>
    collect(fixture.replica.scanChanges({ ...everyPurge, since }, context))

  describe('changes with purges', () => {
    it('list a purge in sequence between two changes, whether the reader knows the document or not', async () => {
      const mirror = new Mirror(fixture)
      await fixture.store(revision('gone', 1, ['a']), revision('kept', 1, ['a']))
      assert.deepEqual(await mirror.read(), ['gone', 'kept'])
      await fixture.store(revision('before', 1, ['a']))
      await apply('u1', 'gone', 'a')
      await fixture.store(revision('after', 1, ['a']))
      assert.deepEqual(await mirror.read(), ['before', '-gone', 'after'])
      assert.deepEqual([...mirror.leaves.keys()], ['kept', 'before', 'after'])
      assert.deepEqual(await new Mirror(fixture).read(), ['kept', 'before', '-gone', 'after'])
    })

    it('list it also when the reader had stopped at the change before it, and count it in the limit', async () => {
      const mirror = new Mirror(fixture)
      await fixture.store(revision('doc', 1, ['a']), revision('other', 1, ['a']))
      assert.deepEqual(await mirror.read(1), ['doc'])
      await apply('u1', 'doc', 'a')
      await fixture.store(revision('other', 2, ['b', 'a']))
      assert.deepEqual(await mirror.read(1), ['-doc'])
      assert.deepEqual(await mirror.read(1), ['other'])
      assert.deepEqual([...mirror.leaves], [['other', ['2-b']]])
    })

    it('list a partly purged document as changed, and do not list a purge that removed nothing', async () => {
      const mirror = new Mirror(fixture)
      await fixture.store(revision('doc', 1, ['a']), revision('doc', 1, ['b']))
      await mirror.read()
      await apply('u1', 'doc', 'b')
      await apply('u2', 'none', 'a')
      assert.deepEqual(await mirror.read(), ['doc'])
      assert.deepEqual([...mirror.leaves], [['doc', ['1-a']]])
    })

    it('follow a document that is purged, written again and purged again', async () => {
      const [early, late] = [new Mirror(fixture), new Mirror(fixture)]
      await fixture.store(revision('doc', 1, ['a']))
      await early.read()
      await apply('u1', 'doc', 'a')
      await fixture.store(revision('doc', 1, ['b']))
      assert.deepEqual(await early.read(), ['doc'])
      assert.deepEqual([...early.leaves], [['doc', ['1-b']]])
      await apply('u2', 'doc', 'b')
      assert.deepEqual(await early.read(), ['-doc'])
      assert.deepEqual(await late.read(), ['-doc'])
      assert.deepEqual([early.leaves.size, late.leaves.size], [0, 0])
    })

    it('list each document once, at its last change or purge', async () => {
      await fixture.store(revision('again', 1, ['a']), revision('gone', 1, ['a']))
      await apply('u1', 'again', 'a')
      await apply('u2', 'gone', 'a')
      await fixture.store(revision('again', 1, ['b']), revision('other', 1, ['a']))
      assert.deepEqual(await new Mirror(fixture).read(), ['-gone', 'again', 'other'])
      await fixture.store(revision('again', 2, ['c', 'b']))
      assert.deepEqual(await new Mirror(fixture).read(), ['-gone', 'other', 'again'])
    })

    it('are unchanged by a compaction', async () => {
      await fixture.store(revision('doc', 1, ['a']), revision('doc', 2, ['b', 'a']), revision('gone', 1, ['a']))
      await apply('u1', 'gone', 'a')
      const before = await scanFrom(0)
      assert.deepEqual(before.map(({ id }) => id), ['doc', 'gone'])
      await fixture.replica.upkeep.compactShard(context)
      assert.deepEqual(await scanFrom(0), before)
    })

    it('refuse each position before a purge that was trimmed', async () => {
      await fixture.store(revision('early', 1, ['a']), revision('gone', 1, ['a']))
      const [place] = await scanFrom(0)
      await apply('u1', 'gone', 'a')
      const { sequence } = await fixture.replica.upkeep.replicaInfo(context)
      await fixture.store(revision('late', 1, ['a']))
      await fixture.replica.trimPurges(1, context)
      for (let since = place!.sequence; since < sequence; since++) {
        await assertFails(scanFrom(since), 'position_expired')
      }
      assert.deepEqual((await scanFrom(sequence)).map(({ id }) => id), ['late'])
      assert.deepEqual((await scanFrom(0)).map(({ id }) => id), ['early', 'late'])
    })

    it('are refused when the reader names another history of the replica', async () => {
      await fixture.store(revision('doc', 1, ['a']))
      const scan = fixture.replica.scanChanges(everyPurge, { ...context, history: 'another' })
      await assertFails(collect(scan), 'other_history')
    })
  })
}

export function upkeepCases(fixture: ReplicaFixture): void {
  describe('upkeep', () => {
    it('returns the counts and sizes of a partition', async () => {
      await fixture.store(
        revision('p:1', 1, ['a'], { value: { text: 'x'.repeat(1000) } }), revision('p:2', 1, ['a']),
        revision('p:3', 1, ['a'], { deleted: true }),
        revision('q:1', 1, ['a']), revision('_design/p', 1, ['a']),
      )
      const { documentCount, deletedCount, sizes } = await fixture.replica.upkeep.partitionInfo('p', context)
      assert.deepEqual([documentCount, deletedCount], [2, 1])
      assert(sizes.external >= 1000 && sizes.external < 1200)
      assert(sizes.active >= sizes.external)
      assert.deepEqual(await fixture.replica.upkeep.partitionInfo('none', context), {
        documentCount: 0, deletedCount: 0, sizes: { active: 0, external: 0 },
      })
    })

    it('accepts a compaction at any time, and keeps every leaf', async () => {
      const first = await fixture.write('doc', { n: 1 })
      const second = await fixture.write('doc', { n: 2 }, first)
      await fixture.replica.upkeep.compactShard(context)
      await fixture.replica.upkeep.compactShard(context)
      const [opened] = await fixture.openRevisions('doc', [second])
      assert.equal(opened!.kind, 'found')
    })

    it('clears the time spans on request', async () => {
      await fixture.write('doc', {})
      for (const { begin, sequence } of await fixture.replica.timeSpans({ clear: false }, context)) {
        assert(begin > 0 && sequence > 0)
      }
      assert.deepEqual(await fixture.replica.timeSpans({ clear: true }, context), [])
      assert.deepEqual(await fixture.replica.timeSpans({ clear: false }, context), [])
    })
  })
}
