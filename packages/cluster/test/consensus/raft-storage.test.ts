import { expect } from 'chai'
import fc from 'fast-check'
import type { LogEntry } from '@sectional/core'
import { MemoryDisk, MemoryStorage, StorageError } from '@sectional/runtime'
import { RaftStorage } from '../../src/consensus/raft-storage.ts'
import { controlStoreName } from '../../src/control/control-store.ts'

describe('a view of the stored metadata log', () => {
  it('shows the vote, the terms of entries and the last index as they are on the disk', async () => {
    const disk = new MemoryDisk()
    const store = await new MemoryStorage(disk).open(controlStoreName)
    const view = () => RaftStorage.view(key => disk.value(controlStoreName, key))
    expect(view()).to.deep.include({ hardState: { term: 0, vote: null, commit: 0 }, snapshotIndex: 0, lastIndex: 0 })
    const storage = new RaftStorage(store)
    await storage.load()
    const entries = [1, 2].map(index => ({ index, term: 3, kind: 'noop' as const, payload: new Uint8Array(0) }))
    await storage.write({
      hardState: { term: 4, vote: 'a', commit: 1 }, snapshot: null, entries, lastIndex: 2, lastTerm: 3,
    })
    expect(view()).to.deep.include({ hardState: { term: 4, vote: 'a', commit: 1 }, lastIndex: 2 })
    expect([1, 2, 3].map(index => view().term(index))).to.deep.equal([3, 3, undefined])
  })
})

describe('the stored metadata log', () => {
  it('is after each restart what was written last, however many entries were replaced', async () => {
    const step = fc.record({ kept: fc.nat(6), added: fc.nat(4), restarts: fc.boolean() })
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 6 }), async steps => {
      const store = await new MemoryStorage().open(controlStoreName)
      let raft = new RaftStorage(store)
      await raft.load()
      let expected: LogEntry[] = []
      for (const [at, { kept, added, restarts }] of steps.entries()) {
        const term = at + 1
        expected = expected.slice(0, kept)
        const entries = Array.from({ length: added }, (_, more): LogEntry => (
          { index: expected.length + more + 1, term, kind: 'command', payload: Buffer.from(`${term} ${more}`) }))
        expected = [...expected, ...entries]
        await raft.write({
          hardState: { term, vote: null, commit: 0 }, snapshot: null, entries, lastIndex: expected.length,
          lastTerm: expected.at(-1)?.term ?? 0,
        })
        const restarted = new RaftStorage(store)
        const { log } = await restarted.load()
        if (restarts) raft = restarted
        expect(log.lastIndex).to.equal(expected.length)
        expect(log.slice(1, log.lastIndex + 1).map(entry => ({ ...entry, payload: Buffer.from(entry.payload) })))
          .to.deep.equal(expected)
      }
    }))
  })
})

describe('snapshots in the stored metadata log', () => {
  it('are removed when the disk works again, after the removal of one has failed', async () => {
    const disk = new MemoryDisk()
    const storage = new RaftStorage(await new MemoryStorage(disk).open(controlStoreName))
    await storage.load()
    const replace = async (index: number, failing = false): Promise<void> => {
      const staged = await storage.stageSnapshot({
        index, term: 1, configuration: { voters: ['a'], learners: [] }, state: Buffer.from('state'), checksum: null,
      })
      await storage.writeSnapshot(staged, { index, term: 1 })
      if (failing) disk.setFaults({ failWrite: () => 'full' })
      await storage.idle()
      disk.setFaults({})
    }
    const chunks = (): number => disk.entries(controlStoreName).filter(([key]) => key.startsWith('c')).length
    await replace(1)
    await replace(2, true)
    expect(chunks()).to.equal(2)
    await replace(3)
    expect(chunks()).to.equal(1)
  })
})

describe('a snapshot of the leader that cannot be written', () => {
  it('leaves no chunks of failed attempts on the disk', async () => {
    const disk = new MemoryDisk()
    const store = await new MemoryStorage(disk).open(controlStoreName)
    const storage = new RaftStorage(store)
    await storage.load()
    const persist = {
      hardState: { term: 4, vote: null, commit: 9 }, entries: [], lastIndex: 9, lastTerm: 4,
      snapshot: {
        index: 9, term: 4, configuration: { voters: ['a'], learners: [] }, state: new Uint8Array(3 * 1024 * 1024),
        checksum: null,
      },
    }
    const chunks = (): number => disk.entries(controlStoreName).filter(([key]) => key.startsWith('c')).length
    for (const [room, written] of [[4, 4], [12, 12], [12, 12]] as const) {
      disk.setFaults({ failWrite: () => chunks() >= room ? 'full' : undefined })
      expect(await storage.write(persist).catch((error: unknown) => error)).to.be.instanceOf(StorageError)
      expect(chunks()).to.equal(written)
    }
    disk.setFaults({})
    await storage.write(persist)
    expect(chunks()).to.equal(12)
    expect((await new RaftStorage(store).load()).snapshot).to.deep.include({ index: 9, state: persist.snapshot.state })
  })
})
