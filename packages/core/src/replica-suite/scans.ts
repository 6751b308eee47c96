import assert from 'node:assert/strict'
import type {
  ChangeRow, IdBound, ReplicaCheckpoint, ScanChangesRequest, ScanDocumentsRequest,
} from '../contracts/shard-replica.ts'
import {
  assertFails, collect, context, documentEdit, type ReplicaFixture, revision, revsLimit, text,
} from './replica-fixture.ts'

/** Ascending in the byte order of UTF-8. In UTF-16 order the emoji would come before the last id. */
const ids = ['A', '_design/x', 'a', 'a\u0000', 'aa', 'b', 'é', '\uff5e', '😀']

const everything: ScanDocumentsRequest = { descending: false, body: false, leaves: false }

async function scanIds(fixture: ReplicaFixture, request: Partial<ScanDocumentsRequest>): Promise<string[]> {
  return (await collect(fixture.replica.scanDocuments({ ...everything, ...request }, context))).map(row => row.id)
}

function scanRows(fixture: ReplicaFixture, request: Partial<ScanChangesRequest>): Promise<ChangeRow[]> {
  return collect(
    fixture.replica.scanChanges({ since: 0, descending: false, body: false, locals: false, ...request }, context),
  )
}

export function documentScanCases(fixture: ReplicaFixture): void {
  describe('scanning documents', () => {
    const scan = (request: Partial<ScanDocumentsRequest>): Promise<string[]> => scanIds(fixture, request)

    beforeEach(async () => {
      await fixture.edits(ids.toReversed().map(id => documentEdit(id, { id })))
    })

    it('lists live documents in byte order of their ids, both ways', async () => {
      assert.deepEqual(await scan({}), ids)
      assert.deepEqual(await scan({ descending: true }), ids.toReversed())
    })

    it('honours bounds in the direction of the scan', async () => {
      const inclusive = (id: string): IdBound => ({ id, inclusive: true })
      const exclusive = (id: string): IdBound => ({ id, inclusive: false })
      assert.deepEqual(await scan({ start: inclusive('a'), end: inclusive('b') }), ['a', 'a\u0000', 'aa', 'b'])
      assert.deepEqual(await scan({ start: exclusive('a'), end: exclusive('b') }), ['a\u0000', 'aa'])
      assert.deepEqual(await scan({ start: inclusive('b'), end: inclusive('a'), descending: true }), [
        'b', 'aa', 'a\u0000', 'a',
      ])
      assert.deepEqual(await scan({ start: exclusive('b'), end: exclusive('a'), descending: true }), ['aa', 'a\u0000'])
      assert.deepEqual(await scan({ start: inclusive('ab') }), ['b', 'é', '\uff5e', '😀'])
      assert.deepEqual(await scan({ end: inclusive('_'), descending: false }), ['A'])
      assert.deepEqual(await scan({ start: inclusive('b'), end: inclusive('a') }), [])
    })

    it('stops at the limit', async () => {
      assert.deepEqual(await scan({ limit: 2 }), ids.slice(0, 2))
      assert.deepEqual(await scan({ limit: 0 }), [])
      assert.deepEqual(await scan({ limit: 2, descending: true }), ids.slice(-2).toReversed())
      assert.deepEqual(await scan({ limit: 100 }), ids)
    })

    it('leaves tombstones out, also of the limit', async () => {
      for (const id of ['A', 'a']) await fixture.delete(id, (await fixture.leaves(id))[0]!)
      assert.deepEqual(await scan({ limit: 2 }), ['_design/x', 'a\u0000'])
      assert.equal((await scan({})).length, ids.length - 2)
    })

    it('returns the winner, with body and leaves when requested', async () => {
      await fixture.store(revision('a', 1, ['00']), revision('a', 9, ['99'], { deleted: true }))
      const winner = (await fixture.leaves('a'))[0]!
      const bound = { start: { id: 'a', inclusive: true }, limit: 1 }
      const [lean] = await collect(fixture.replica.scanDocuments({ ...everything, ...bound }, context))
      assert.deepEqual([lean?.id, lean?.revision, lean?.body, lean?.leaves], ['a', winner, undefined, undefined])
      const [full] = await collect(
        fixture.replica.scanDocuments({ ...everything, ...bound, body: true, leaves: true }, context),
      )
      assert.equal(text(full?.body), '{"id":"a"}')
      assert.deepEqual(full?.leaves?.map(leaf => leaf.revision), [winner, '1-00', '9-99'])
    })

    it('counts the documents that a scan from a bound leaves out', async () => {
      const count = (before: IdBound | undefined, descending = false): Promise<number> =>
        fixture.replica.countDocuments({ ...(before && { before }), descending }, context)
      await fixture.delete('A', (await fixture.leaves('A'))[0]!)
      assert.equal(await count(undefined), ids.length - 1)
      assert.equal(await count({ id: 'aa', inclusive: true }), 3)
      assert.equal(await count({ id: 'aa', inclusive: false }), 4)
      assert.equal(await count({ id: 'aa', inclusive: true }, true), 4)
      assert.equal(await count({ id: 'aa', inclusive: false }, true), 5)
    })
  })
}

export function changeScanCases(fixture: ReplicaFixture): void {
  describe('scanning changes', () => {
    const scan = (since: number, options: Partial<ScanChangesRequest> = {}): Promise<ChangeRow[]> =>
      scanRows(fixture, { since, ...options })

    it('lists each document once, at its last sequence, ascending', async () => {
      const first = await fixture.write('a', { v: 1 })
      await fixture.write('b', {})
      await fixture.write('a', { v: 2 }, first)
      await fixture.delete('b', (await fixture.leaves('b'))[0]!)
      await fixture.write('c', {})
      const rows = await scan(0)
      assert.deepEqual(rows.map(row => row.id), ['a', 'b', 'c'])
      for (const row of rows) {
        const { sequence, leaves } = await fixture.open(row.id)
        assert.deepEqual([row.sequence, row.leaves], [sequence, leaves])
      }
      assert.deepEqual(rows.map(row => row.sequence), rows.map(row => row.sequence).toSorted((x, y) => x - y))
      assert.equal(rows.at(-1)?.sequence, (await fixture.replica.upkeep.replicaInfo(context)).sequence)
    })

    it('resumes after a sequence', async () => {
      for (const id of ['a', 'b', 'c']) await fixture.write(id, {})
      const [a, b, c] = await scan(0)
      assert.deepEqual(await scan(a!.sequence), [b, c])
      assert.deepEqual(await scan(a!.sequence, { limit: 1 }), [b])
      assert.deepEqual(await scan(c!.sequence), [])
      assert.deepEqual(await scan(c!.sequence + 1000), [])
    })

    it('lists all from the newest when descending', async () => {
      for (const id of ['a', 'b', 'c']) await fixture.write(id, {})
      assert.deepEqual((await scan(0, { descending: true })).map(row => row.id), ['c', 'b', 'a'])
      assert.deepEqual((await scan(0, { descending: true, limit: 1 })).map(row => row.id), ['c'])
    })

    it('returns all leaves, and the body of the winner when requested', async () => {
      await fixture.store(revision('doc', 1, ['aa']), revision('doc', 1, ['bb']))
      const [lean] = await scan(0)
      assert.deepEqual([lean?.leaves.map(leaf => leaf.revision), lean?.body], [['1-bb', '1-aa'], undefined])
      assert.equal(text((await scan(0, { body: true }))[0]?.body), '{"from":"bb"}')
    })

    it('lists local documents only for anti-entropy', async () => {
      await fixture.write('doc', {})
      await fixture.replica.updateLocalDocument(
        { id: 'mark', revision: 1, body: Buffer.from('{}'), mustExist: false }, context,
      )
      assert.deepEqual((await scan(0)).map(row => row.id), ['doc'])
      const local = (await scan(0, { locals: true })).find(row => row.local)
      assert.deepEqual([local?.id, local?.leaves], ['mark', []])
      assert.deepEqual((await scan(local!.sequence, { locals: true })), [])
    })
  })
}

export function changeWaitCases(fixture: ReplicaFixture): void {
  describe('waiting for changes', () => {
    const stand = async (): Promise<ReplicaCheckpoint> => {
      const { history, sequence } = await fixture.replica.upkeep.replicaInfo(context)
      return { history, sequence }
    }

    it('resolves with the next commit, of documents and of local documents', async () => {
      const before = await stand()
      const waiting = fixture.replica.waitForChange(before, context)
      await fixture.write('a', {})
      const after = await waiting
      assert.deepEqual(after, await stand())
      assert(after.sequence > before.sequence)
      const local = fixture.replica.waitForChange(after, context)
      await fixture.replica.updateLocalDocument(
        { id: 'mark', revision: 1, body: Buffer.from('{}'), mustExist: false }, context,
      )
      assert((await local).sequence > after.sequence)
    })

    it('resolves at once when the caller has another position', async () => {
      await fixture.write('a', {})
      const now = await stand()
      assert.deepEqual(await fixture.replica.waitForChange({ ...now, sequence: 0 }, context), now)
      assert.deepEqual(
        await fixture.replica.waitForChange({ history: 'another', sequence: now.sequence + 5 }, context), now,
      )
    })

    it('ends when its caller cancels it, while other callers still wait', async () => {
      const before = await stand()
      const controller = new AbortController()
      const given = assertFails(
        fixture.replica.waitForChange(before, { ...context, signal: controller.signal }), 'cancelled',
      )
      const others = Array.from({ length: 3 }, () => fixture.replica.waitForChange(before, context))
      controller.abort()
      await given
      await fixture.write('a', {})
      for (const other of others) assert((await other).sequence > before.sequence)
    })

    it('does not continue in another history', async () => {
      await fixture.write('a', {})
      await assertFails(scanRows(fixture, { since: 0, history: 'another' }), 'not_hosted')
      assert.equal((await scanRows(fixture, { since: 0, history: (await stand()).history })).length, 1)
    })

    it('counts the documents that changed since', async () => {
      const first = await fixture.write('a', {})
      await fixture.write('b', {})
      const { sequence } = await stand()
      await fixture.replica.updateLocalDocument(
        { id: 'mark', revision: 1, body: Buffer.from('{}'), mustExist: false }, context,
      )
      await fixture.write('a', { v: 2 }, first)
      await fixture.write('c', {})
      const count = (since: number): Promise<number> => fixture.replica.countChanges(since, context)
      assert.deepEqual(
        [await count(0), await count(sequence), await count((await stand()).sequence), await count(1e9)], [3, 2, 0, 0],
      )
    })
  })
}

export function longScanCases(fixture: ReplicaFixture): void {
  describe('scanning a lot', () => {
    it('reads thousands of documents, and can be stopped early', async () => {
      const many = Array.from({ length: 2500 }, (_, i) => documentEdit(`n${String(i).padStart(5, '0')}`, { i }))
      await fixture.edits(many)
      const rows = await scanIds(fixture, { start: { id: 'n', inclusive: true }, end: { id: 'n~', inclusive: true } })
      assert.deepEqual(rows, many.map(edit => edit.id))
      for await (const page of fixture.replica.scanDocuments({ ...everything, body: true }, context)) {
        assert(page.length > 0)
        break
      }
      assert.equal((await scanIds(fixture, { limit: 1 })).length, 1)
    })

    it('reads thousands of changes without a gap', async () => {
      const edits = Array.from({ length: 2500 }, (_, i) => documentEdit(`n${i}`, { i }))
      await fixture.replica.updateDocuments({ edits, revsLimit }, context)
      const rows = await scanRows(fixture, { body: true })
      assert.equal(new Set(rows.map(row => row.id)).size, edits.length)
      assert.equal(rows.length, edits.length)
      const left = await fixture.replica.countChanges(rows[999]!.sequence, context)
      assert(left > 1400 && left < 1600, `about 1500 are left, not ${left}`)
      assert.equal(await fixture.replica.countChanges(rows[2400]!.sequence, context), 99)
    })
  })
}
