import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { MemoryDisk, MemoryStorage } from '../../src/storage/storage-memory.ts'
import { lastKey, type Store } from '../../src/storage/storage.ts'
import { storageSuite } from '../../src/storage/storage-suite.ts'

storageSuite('MemoryStorage', {
  create: async () => {
    const disk = new MemoryDisk()
    disk.keepJournal(10)
    return new MemoryStorage(disk)
  },
  destroy: async () => {},
  loseLastWrite: async (storage, store) => {
    const { disk } = storage as MemoryStorage
    expect(disk.loseBatches(store, disk.journalLength(store) - 1, disk.journalLength(store))).to.equal(true)
  },
  refuseWrites: async (storage, refused) => {
    (storage as MemoryStorage).disk.setFaults(refused ? { failWrite: () => 'io' } : {})
  },
})

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('a simulated crash', () => {
  it('can leave the rest of a range that was being cleared', async () => {
    const clock = new ManualClock()
    const disk = new MemoryDisk(clock)
    const storage = new MemoryStorage(disk)
    const store = await storage.open('documents')
    await store.write(batch => { for (const key of ['1', '2', '3', '4']) batch.put(key, Buffer.from(key)) })
    disk.setFaults({ clearPageKeys: () => 2, syncDelayMs: () => 10 })
    const all = { gte: '', lt: lastKey }
    const clearing = store.clear(all).catch((error: unknown) => error)
    await clock.advance(15)
    const after = await storage.crash().open('documents')
    expect(await clearing).to.include({ code: 'closed' })
    expect((await after.iterate(all).next(9)).map(([key]) => key)).to.deep.equal(['3', '4'])
    const again = after.clear(all)
    await clock.advance(10)
    await again
    expect(await after.iterate(all).next(9)).to.deep.equal([])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('loses the batch in flight and all behind it, and keeps what was synced', async () => {
    const clock = new ManualClock()
    const storage = new MemoryStorage(new MemoryDisk(clock))
    const store = await storage.open('documents')
    await store.write(batch => batch.put('synced', bytes('')))
    storage.disk.setFaults({ syncDelayMs: () => 5 })
    const inFlight = outcome(store.write(batch => batch.put('in-flight', bytes(''))))
    await clock.advance(1)
    const queued = outcome(store.write(batch => batch.put('queued', bytes(''))))
    const after = storage.crash()
    expect([await inFlight, await queued]).to.deep.equal(['closed', 'closed'])
    const reopened = await after.open('documents')
    expect(reopened.getSync('synced')).to.not.equal(undefined)
    expect(reopened.getSync('in-flight')).to.equal(undefined)
    expect(reopened.getSync('queued')).to.equal(undefined)
    expect(clock.pendingTimers).to.equal(0)
  })

  it('may keep the batch in flight completely', async () => {
    const clock = new ManualClock()
    const storage = new MemoryStorage(new MemoryDisk(clock))
    const store = await storage.open('documents')
    storage.disk.setFaults({ syncDelayMs: () => 5, keepUnsynced: () => true })
    const writes = ['a', 'b'].map(name => outcome(store.write(batch => batch.put(name, bytes('')))))
    await clock.advance(1)
    const reopened = await storage.crash().open('documents')
    expect(await Promise.all(writes)).to.deep.equal(['closed', 'closed'])
    expect(reopened.getSync('a')).to.not.equal(undefined)
    expect(reopened.getSync('b')).to.not.equal(undefined)
  })

  it('leaves dead handles behind', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    await store.write(batch => batch.put('a', bytes('')))
    const iterator = store.iterate({ gte: 'a', lt: 'b' })
    storage.crash()
    expect(await outcome(iterator.next(1))).to.equal('closed')
    expect(await outcome(store.write(() => {}))).to.equal('closed')
    expect(await outcome(storage.open('documents'))).to.equal('closed')
    expect(() => store.getSync('a')).to.throw('revoked')
  })
})

describe('a failing disk', () => {
  it('fails the batch and every write queued behind it, then takes new ones', async () => {
    const clock = new ManualClock()
    const storage = new MemoryStorage(new MemoryDisk(clock))
    const store = await storage.open('documents')
    storage.disk.setFaults({ syncDelayMs: () => 5 })
    storage.disk.failNextWrite('full')
    const first = outcome(store.write(batch => batch.put('a', bytes(''))))
    await clock.advance(1)
    const second = outcome(store.write(batch => batch.put('b', bytes(''))))
    await clock.advance(10)
    expect([await first, await second]).to.deep.equal(['full', 'full'])
    const third = outcome(store.write(batch => batch.put('c', bytes(''))))
    await clock.advance(10)
    expect(await third).to.equal('written')
    expect(['a', 'b', 'c'].filter(name => store.getSync(name) !== undefined)).to.deep.equal(['c'])
  })
})

describe('other behaviour of a simulated disk', () => {
  describe('that may have written a batch whose fsync failed', () => {
    let storage: MemoryStorage
    let store: Store
    beforeEach(async () => {
      storage = new MemoryStorage()
      store = await storage.open('documents')
      storage.disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
      expect(await outcome(store.write(batch => batch.put('a', bytes(''))))).to.equal('io')
      storage.disk.setFaults({})
    })

    it('shows it when the store has recovered, not before', async () => {
      expect(store.getSync('a')).to.equal(undefined)
      storage.disk.setFaults({ failRecovery: () => 'io' })
      expect(await outcome(store.write(() => {}))).to.equal('io')
      expect(store.getSync('a')).to.equal(undefined)
      storage.disk.setFaults({})
      await store.write(() => {})
      expect(store.getSync('a')).to.not.equal(undefined)
    })

    it('shows it to the process that opens the store after a crash or a stop', async () => {
      const copied = await new MemoryStorage(storage.disk.copy()).open('documents')
      expect(copied.getSync('a')).to.not.equal(undefined)
      const crashed = storage.crash()
      store = await crashed.open('documents')
      expect(store.getSync('a')).to.not.equal(undefined)
      storage.disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
      expect(await outcome(store.write(batch => batch.put('b', bytes(''))))).to.equal('io')
      await store.close()
      expect((await crashed.open('documents')).getSync('b')).to.not.equal(undefined)
    })
  })

  it('fails reads of every kind', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    storage.disk.setFaults({ failRead: () => 'corrupt' })
    expect(() => store.getSync('a')).to.throw('Checksum mismatch')
    expect(await outcome(store.getMany(['a']))).to.equal('corrupt')
    expect(await outcome(store.iterate({ gte: 'a', lt: 'b' }).next(1))).to.equal('corrupt')
  })

  it('gives an independent copy', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    await store.write(batch => batch.put('a', bytes('1')))
    expect(storage.disk.openStores).to.deep.equal(['documents'])
    const copy = await new MemoryStorage(storage.disk.copy()).open('documents')
    await store.write(batch => batch.put('a', bytes('2')))
    await copy.write(batch => { batch.put('b', bytes('3')) })
    expect(Buffer.from(copy.getSync('a')!).toString()).to.equal('1')
    expect(store.getSync('b')).to.equal(undefined)
    expect(Buffer.from(store.getSync('a')!).toString()).to.equal('2')
  })
})

function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'written', error => error.code)
}
