import { expect } from 'chai'
import { MemoryDisk, MemoryStorage } from '@sectional/runtime'
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
