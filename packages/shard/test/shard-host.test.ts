import { expect } from 'chai'
import { timeSpanMin, timeSpanMs } from '@sectional/core'
import type { ShardReplica } from '@sectional/core'
import { ManualClock, MemoryDisk, MemoryStorage } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../src/index.ts'
import { directoryKeys, prefixMax, ShardKeys } from '../src/records/key-layout.ts'
import { scanEntries } from '../src/records/entry-scan.ts'
import { collect, context, edit, shardA, shardB, shardRuntime } from './shard-world.ts'

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(() => 'resolved', (error: { code?: string }) => error.code ?? error)
}

/** Returns the keys of shards in the store of a closed host. */
async function storedKeys(storage: MemoryStorage): Promise<number> {
  const store = await storage.open('documents')
  const keys = await collect(scanEntries(store, ShardKeys.shards(1, prefixMax)))
  await store.close()
  return keys.length
}

describe('a shard host', () => {
  it('finds its shards and their documents again after a restart', async () => {
    const storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    const created = await first.create(shardA)
    await first.create(shardB)
    await created.updateDocuments({ edits: [edit('a', null, { x: 1 })], revsLimit: 10 }, context)
    const { history } = await created.upkeep.replicaInfo(context)
    await first.close()

    const second = await ShardHost.open(shardRuntime(storage))
    expect(second.list()).to.deep.equal([shardB, shardA])
    const info = await (await second.open(shardA)).upkeep.replicaInfo(context)
    expect(info).to.include({ history, sequence: 1, documentCount: 1 })
    await second.close()
  })

  it('counts the documents of partitions after a restart and after a rebuild', async () => {
    const storage = new MemoryStorage()
    let host = await ShardHost.open(shardRuntime(storage))
    await host.create(shardA, true)
    await host.create(shardB)
    const counts = async (id: string): Promise<readonly unknown[]> => {
      const engine = await host.open(shardA)
      await engine.updateDocuments({ edits: [edit(id, null, {})], revsLimit: 10 }, context)
      const { documentCount } = await engine.upkeep.partitionInfo('p', context)
      expect((await verifyShard(engine.records)).problems).to.deep.equal([])
      return [documentCount, engine.records.partitioned, host.replica(shardB)!.records.partitioned]
    }
    expect(await counts('p:1')).to.deep.equal([1, true, false])
    await host.close()
    host = await ShardHost.open(shardRuntime(storage))
    expect(await counts('p:2')).to.deep.equal([2, true, false])
    await host.rebuild(shardA)
    expect(await counts('p:3')).to.deep.equal([3, true, false])
    await host.close()
  })

  it('keeps the times of sequences over a restart, until they are cleared', async () => {
    const storage = new MemoryStorage()
    const clock = new ManualClock(2 * timeSpanMin)
    let host = await ShardHost.open(shardRuntime(storage, clock))
    const sequences = async (clear = false): Promise<readonly number[]> => {
      const spans = await (await host.open(shardA)).timeSpans({ clear }, context)
      return spans.map(({ sequence }) => sequence)
    }
    const engine = await host.create(shardA)
    for (const id of ['a', 'b', 'c']) {
      await engine.updateDocuments({ edits: [edit(id, null, {})], revsLimit: 10 }, context)
      await clock.advance(id === 'a' ? 1000 : timeSpanMs)
    }
    expect(await sequences()).to.deep.equal([1, 3])
    for (const clear of [false, true]) {
      await host.close()
      host = await ShardHost.open(shardRuntime(storage, clock))
      expect(await sequences(clear)).to.deep.equal(clear ? [] : [1, 3])
    }
    await host.close()
    host = await ShardHost.open(shardRuntime(storage, clock))
    expect(await sequences()).to.deep.equal([])
    await host.close()
  })

  it('recognises the attempt that made a revision after a restart', async () => {
    const storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    const claim = { ...edit('a', null, { claimed: true }), attempt: 1_234_567_890_123 }
    const decided = await (await first.create(shardA)).updateDocuments({ edits: [claim], revsLimit: 10 }, context)
    await first.close()
    const second = await ShardHost.open(shardRuntime(storage))
    const engine = await second.open(shardA)
    expect(await engine.updateDocuments({ edits: [claim], revsLimit: 10 }, context)).to.deep.equal(decided)
    const other = await engine.updateDocuments({ edits: [{ ...claim, attempt: 1 }], revsLimit: 10 }, context)
    expect(other).to.deep.equal({ kind: 'decided', outcomes: [{ kind: 'conflict' }] })
    await second.close()
  })

  it('keeps trails over a restart, except for held extensions', async () => {
    const storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    const learning = await first.create(shardA)
    const learn = (from: number, to: number): Promise<unknown> => learning.storeRevisions({
      revisions: [], revsLimit: 10,
      trail: { history: 'north', base: { theirs: from, own: from }, points: [{ theirs: to, own: to }] },
    }, context)
    await learn(0, 5000)
    for (let at = 5000; at < 5100; at++) await learn(at, at + 1)
    const follow = (engine: ShardReplica): Promise<number> =>
      engine.translateCheckpoints([{ history: 'north', sequence: 10_000 }], context)
    expect(await follow(learning)).to.equal(5100)
    await first.close()

    const second = await ShardHost.open(shardRuntime(storage))
    expect(await follow(await second.open(shardA))).to.be.within(5084, 5099)
    await second.close()
  })

  it('keeps shards apart', async () => {
    const host = await ShardHost.open(shardRuntime())
    const a = await host.create(shardA)
    const b = await host.create(shardB)
    await a.updateDocuments({ edits: [edit('x', null, { in: 'a' })], revsLimit: 10 }, context)
    expect(await b.openDocument({ id: 'x', body: true, tree: false }, context)).to.equal(null)
    const everyChange = { since: 0, descending: false, body: false, locals: true }
    expect(await collect(b.scanChanges(everyChange, context))).to.deep.equal([])
    await host.close()
  })

  it('gives the same engine to everyone who creates or opens a shard', async () => {
    const host = await ShardHost.open(shardRuntime())
    const [one, two] = await Promise.all([host.create(shardA), host.create(shardA)])
    expect(two).to.equal(one)
    expect(await host.create(shardA)).to.equal(one)
    expect(await host.open(shardA)).to.equal(one)
    expect(host.replica(shardA)).to.equal(one)
    await host.close()
  })

  it('calls listeners after each durable change until they unsubscribe', async () => {
    const host = await ShardHost.open(shardRuntime())
    const engine = await host.create(shardA)
    const heard: unknown[] = []
    const unsubscribe = host.onCommit(shard => heard.push(shard))
    await engine.updateDocuments({ edits: [edit('a', null, {}), edit('b', null, {})], revsLimit: 10 }, context)
    await engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    await engine.updateLocalDocument({ id: 'a', revision: 1, body: Buffer.from('{}'), mustExist: false }, context)
    await engine.storeRevisions({ revisions: [], revsLimit: 10, checkpoint: { history: 'h', sequence: 1 } }, context)
    expect(heard).to.deep.equal([shardA, shardA])
    unsubscribe()
    await engine.updateDocuments({ edits: [edit('c', null, {})], revsLimit: 10 }, context)
    expect(heard).to.have.length(2)
    await host.close()
  })

  it('detects at a start whether the last process shut down cleanly', async () => {
    let storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    await first.create(shardA)
    expect(first.isUncompared(shardA), 'a new shard').to.equal(false)
    await first.close()
    const second = await ShardHost.open(shardRuntime(storage))
    expect(second.isUncompared(shardA), 'after a stop').to.equal(false)
    await second.create(shardB)
    storage = storage.crash()
    const third = await ShardHost.open(shardRuntime(storage))
    expect([third.isUncompared(shardA), third.isUncompared(shardB)], 'after a crash').to.deep.equal([true, true])
    third.compared(shardA)
    await third.close()
    const fourth = await ShardHost.open(shardRuntime(storage))
    expect(fourth.isUncompared(shardA), 'stopped before everything was compared').to.equal(true)
    fourth.compared(shardA)
    fourth.compared(shardB)
    await fourth.close()
    const fifth = await ShardHost.open(shardRuntime(storage))
    expect(fifth.isUncompared(shardB)).to.equal(false)
    await fifth.close()
  })

  it('shuts down cleanly after a shard was dropped before it was compared', async () => {
    let storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    await first.create(shardA)
    await first.create(shardB)
    storage = storage.crash()
    const second = await ShardHost.open(shardRuntime(storage))
    await second.drop(shardB)
    await second.create(shardB)
    expect([second.isUncompared(shardA), second.isUncompared(shardB)]).to.deep.equal([true, false])
    second.compared(shardA)
    await second.close()
    const third = await ShardHost.open(shardRuntime(storage))
    expect([third.isUncompared(shardA), third.isUncompared(shardB)]).to.deep.equal([false, false])
    await third.close()
  })

  it('does not treat a shutdown after a failed write as clean', async () => {
    const storage = new MemoryStorage()
    const first = await ShardHost.open(shardRuntime(storage))
    const engine = await first.create(shardA)
    storage.disk.setFaults({ failWrite: () => 'io' })
    const failed = engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    expect(await rejection(failed)).to.equal('storage')
    storage.disk.setFaults({})
    await first.close()
    const second = await ShardHost.open(shardRuntime(storage))
    expect(second.isUncompared(shardA)).to.equal(true)
    await second.close()
  })

  it('calls listeners when it did not store revisions or purges, or a peer reports this', async () => {
    const storage = new MemoryStorage()
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    const heard: unknown[] = []
    const unsubscribe = host.onMissed(shard => heard.push(shard))
    const revisions = [{ id: 'x', path: { start: 1, ids: ['a'] }, deleted: false, body: Buffer.from('{}') }]
    const purges = [{ uuid: 'p', id: 'x', paths: [{ start: 1, ids: ['a'] }] }]
    storage.disk.setFaults({ failWrite: () => 'full' })
    expect(await rejection(engine.storeRevisions({ revisions, revsLimit: 10 }, context))).to.equal('storage')
    expect(heard).to.deep.equal([shardA])
    expect(await rejection(engine.purgeDocuments({ purges }, context))).to.equal('storage')
    expect(heard).to.have.length(2)
    storage.disk.setFaults({})
    await engine.storeRevisions({ revisions, revsLimit: 10 }, context)
    expect(heard, 'what is stored is not missed').to.have.length(2)
    const attachments = [{
      name: 'a', contentType: 'text/plain', revpos: 2, digest: '', blob: '0'.repeat(64), length: 1,
      encoding: 'identity' as const, storedLength: 1,
    }]
    const later = [{ ...revisions[0]!, path: { start: 2, ids: ['b', 'a'] }, attachments }]
    expect(await rejection(engine.storeRevisions({ revisions: later, revsLimit: 10 }, context)))
      .to.equal('missing_blob')
    expect(heard, 'the caller provides the content and stores the revision then').to.have.length(2)
    await engine.storeRevisions({ revisions: [], revsLimit: 10, missed: true }, context)
    expect(heard).to.have.length(3)
    unsubscribe()
    await host.close()
  })

  it('announces a batch that failed but is on the disk nevertheless', async () => {
    const disk = new MemoryDisk()
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(disk)))
    const engine = await host.create(shardA)
    const heard = Promise.withResolvers<void>()
    host.onCommit(() => heard.resolve())
    disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
    const failed = engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    expect(await rejection(failed)).to.equal('storage')
    disk.setFaults({})
    await heard.promise
    expect((await engine.upkeep.replicaInfo(context)).sequence).to.equal(1)
    await host.close()
  })

  it('announces such a batch also after further failures of the disk, without another write', async () => {
    const disk = new MemoryDisk()
    const clock = new ManualClock()
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(disk), clock))
    const engine = await host.create(shardA)
    let told = false
    host.onCommit(() => { told = true })
    disk.setFaults({ failWrite: () => 'io', landFailed: () => true, failRecovery: () => 'io' })
    const failed = engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    expect(await rejection(failed)).to.equal('storage')
    await clock.advance(10_000)
    expect(told).to.equal(false)
    disk.setFaults({})
    await clock.advance(60_000)
    expect(told).to.equal(true)
    await host.close()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('counts what such a batch wrote while the announcement of an earlier one waits to try again', async () => {
    const disk = new MemoryDisk()
    const clock = new ManualClock()
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(disk), clock))
    const engine = await host.create(shardA)
    const write = (id: string): Promise<unknown> =>
      engine.updateDocuments({ edits: [edit(id, null, {})], revsLimit: 10 }, context)
    disk.setFaults({ failWrite: () => 'io', failRecovery: () => 'io' })
    expect(await rejection(write('a'))).to.equal('storage')
    disk.setFaults({})
    await write('b')
    disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
    expect(await rejection(write('c'))).to.equal('storage')
    disk.setFaults({})
    const counts = async (): Promise<readonly number[]> => {
      const { documentCount, sequence } = await engine.upkeep.replicaInfo(context)
      return [documentCount, sequence]
    }
    expect(await counts(), 'the store has not recovered yet').to.deep.equal([1, 1])
    await clock.advance(10_000)
    expect(await counts()).to.deep.equal([2, 2])
    await host.close()
  })

  it('announces such a batch also when the disk cannot be read at first', async () => {
    const disk = new MemoryDisk()
    const clock = new ManualClock()
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(disk), clock))
    const engine = await host.create(shardA)
    let told = false
    host.onCommit(() => { told = true })
    disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
    const answer = rejection(engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context))
    disk.setFaults({ failWrite: () => 'io', landFailed: () => true, failRead: () => 'io' })
    expect(await answer).to.equal('storage')
    disk.setFaults({ failRead: () => 'io' })
    await clock.advance(10_000)
    expect(told).to.equal(false)
    disk.setFaults({})
    await clock.advance(60_000)
    expect(told).to.equal(true)
    await host.close()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('reports that a shard is not hosted', async () => {
    const host = await ShardHost.open(shardRuntime())
    expect(host.replica(shardA)).to.equal(undefined)
    expect(await rejection(host.open(shardA))).to.equal('not_hosted')
    await host.drop(shardA)
    await host.close()
  })

  it('refuses calls and running scans of a dropped shard, and starts a re-created one with a new history', async () => {
    const storage = new MemoryStorage()
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    const edits = Array.from({ length: 1200 }, (_, index) => edit(`${index}`, null, {}))
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    const { history } = await engine.upkeep.replicaInfo(context)
    const scan = engine.scanDocuments({ descending: false, body: false, leaves: false }, context)
    await scan.next()
    const waiting = rejection(engine.waitForChange(engine.position()!, context))

    await host.drop(shardA)
    expect(await waiting).to.equal('not_hosted')
    expect(engine.position()).to.equal(undefined)
    expect(await rejection(engine.openDocument({ id: '1', body: true, tree: false }, context))).to.equal('not_hosted')
    expect(await rejection(scan.next())).to.equal('not_hosted')
    expect(host.list()).to.deep.equal([])

    const fresh = await host.create(shardA)
    expect(await fresh.upkeep.replicaInfo(context)).to.include({ sequence: 0, documentCount: 0 })
    expect((await fresh.upkeep.replicaInfo(context)).history).not.to.equal(history)
    await host.reclaimed()
    await host.close()
    expect(await storedKeys(storage)).to.equal(0)
  })

  it('completes writes that were accepted before a drop, and removes their keys', async () => {
    const storage = new MemoryStorage()
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    const writing = rejection(engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context))
    await host.drop(shardA)
    expect(await writing).to.equal('resolved')
    await host.reclaimed()
    await host.close()
    expect(await storedKeys(storage)).to.equal(0)
  })

  it('continues to clear a dropped shard after a crash, and never reuses its prefix', async () => {
    let storage = new MemoryStorage(new MemoryDisk())
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    await engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    const dropping = host.drop(shardA)
    while (storage.disk !== undefined && host.list().length > 0) await Promise.resolve()
    storage = storage.crash()
    await rejection(dropping)
    // A crash while the keys are cleared leaves the mark of the dropped shard.
    const store = await storage.open('documents')
    await store.write(batch => {
      batch.put(directoryKeys.dropped(1), new Uint8Array(0))
      batch.put(new ShardKeys(1).document('left over'), new Uint8Array(1))
    })
    await store.close()

    const again = await ShardHost.open(shardRuntime(storage))
    const fresh = await again.create(shardA)
    expect(fresh.records.keys.prefix).to.equal(2)
    await again.reclaimed()
    await again.close()
    expect(await storedKeys(storage)).to.equal(0)
  })

  it('keeps a shard whose drop failed, with everything in it', async () => {
    const storage = new MemoryStorage()
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    await engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    storage.disk.failNextWrite('full')
    expect(await rejection(host.drop(shardA))).to.equal('storage')
    expect((await (await host.open(shardA)).upkeep.replicaInfo(context)).documentCount).to.equal(1)
    await host.drop(shardA)
    expect(host.list()).to.deep.equal([])
    await host.reclaimed()
    await host.close()
  })

  it('creates, drops and rebuilds a shard in the order of the calls', async () => {
    const host = await ShardHost.open(shardRuntime())
    await host.create(shardA)
    const rebuilt = host.rebuild(shardA)
    const created = host.create(shardA)
    const dropped = host.drop(shardA)
    await Promise.all([rebuilt, created, dropped])
    expect(host.list()).to.deep.equal([])

    const again = host.create(shardA)
    const gone = host.drop(shardA)
    const last = host.create(shardA)
    await Promise.all([again, gone])
    await (await last).updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    expect(host.list()).to.deep.equal([shardA])
    const changes = [host.rebuild(shardA), host.create(shardA), host.drop(shardA)]
    await host.close()
    await Promise.allSettled(changes)
  })

  it('rebuilds no shard that is being rebuilt or dropped, that it does not host, or when it is closed', async () => {
    const host = await ShardHost.open(shardRuntime())
    await host.create(shardA)
    const rebuilding = host.rebuild(shardA)
    expect(await rejection(host.rebuild(shardA))).to.equal('not_hosted')
    await rebuilding
    const dropping = host.drop(shardA)
    expect(await rejection(host.rebuild(shardA))).to.equal('not_hosted')
    await dropping
    expect(await rejection(host.rebuild(shardA))).to.equal('not_hosted')
    await host.create(shardA)
    await host.close()
    expect(await rejection(host.rebuild(shardA))).to.equal('closed')
  })

  it('finishes accepted writes when it closes, and refuses what comes later', async () => {
    const storage = new MemoryStorage()
    const host = await ShardHost.open(shardRuntime(storage))
    const engine = await host.create(shardA)
    const accepted = engine.updateDocuments({ edits: [edit('a', null, {})], revsLimit: 10 }, context)
    const closing = host.close()
    expect((await accepted).kind).to.equal('decided')
    await closing
    expect(await rejection(engine.openDocument({ id: 'a', body: false, tree: false }, context))).to.equal('closed')
    expect(await rejection(host.create(shardB))).to.equal('closed')
    const again = await ShardHost.open(shardRuntime(storage))
    expect((await (await again.open(shardA)).upkeep.replicaInfo(context)).documentCount).to.equal(1)
    await again.close()
  })
})
