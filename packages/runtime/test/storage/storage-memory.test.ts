import { expect } from 'chai'
import { ManualClock } from '../../src/clock-manual.ts'
import { MemoryDisk, MemoryStorage } from '../../src/storage/storage-memory.ts'
import { storageSuite } from '../../src/storage/storage-suite.ts'

storageSuite('MemoryStorage', { create: async () => new MemoryStorage(), destroy: async () => {} })

const key = (name: string): Uint8Array => Buffer.from(name)

describe('a simulated crash', () => {
  it('can leave half of a range that was being cleared', async () => {
    const clock = new ManualClock()
    const disk = new MemoryDisk(clock)
    disk.setFaults({ clearPauseMs: () => 10 })
    const storage = new MemoryStorage(disk)
    const store = await storage.open('documents')
    await store.write(batch => { for (const byte of [1, 2, 3, 4]) batch.put(Uint8Array.of(byte), Uint8Array.of(byte)) })
    const all = { gte: Uint8Array.of(0), lt: Uint8Array.of(255) }
    const clearing = store.clear(all).catch((error: unknown) => error)
    const after = await storage.crash().open('documents')
    expect(await clearing).to.include({ code: 'closed' })
    expect((await after.iterate(all).next(9)).map(([key]) => key[0])).to.deep.equal([3, 4])
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
    await store.write(batch => batch.put(key('synced'), key('')))
    storage.disk.setFaults({ syncDelayMs: () => 5 })
    const inFlight = outcome(store.write(batch => batch.put(key('in-flight'), key(''))))
    await clock.advance(1)
    const queued = outcome(store.write(batch => batch.put(key('queued'), key(''))))
    const after = storage.crash()
    expect([await inFlight, await queued]).to.deep.equal(['closed', 'closed'])
    const reopened = await after.open('documents')
    expect(reopened.getSync(key('synced'))).to.not.equal(undefined)
    expect(reopened.getSync(key('in-flight'))).to.equal(undefined)
    expect(reopened.getSync(key('queued'))).to.equal(undefined)
    expect(clock.pendingTimers).to.equal(0)
  })

  it('may keep the batch in flight, wholly', async () => {
    const clock = new ManualClock()
    const storage = new MemoryStorage(new MemoryDisk(clock))
    const store = await storage.open('documents')
    storage.disk.setFaults({ syncDelayMs: () => 5, keepUnsynced: () => true })
    const writes = ['a', 'b'].map(name => outcome(store.write(batch => batch.put(key(name), key('')))))
    await clock.advance(1)
    const reopened = await storage.crash().open('documents')
    expect(await Promise.all(writes)).to.deep.equal(['closed', 'closed'])
    expect(reopened.getSync(key('a'))).to.not.equal(undefined)
    expect(reopened.getSync(key('b'))).to.not.equal(undefined)
  })

  it('leaves dead handles behind', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    await store.write(batch => batch.put(key('a'), key('')))
    const iterator = store.iterate({ gte: key('a'), lt: key('b') })
    storage.crash()
    expect(await outcome(iterator.next(1))).to.equal('closed')
    expect(await outcome(store.write(() => {}))).to.equal('closed')
    expect(await outcome(storage.open('documents'))).to.equal('closed')
    expect(() => store.getSync(key('a'))).to.throw('revoked')
  })
})

describe('a failing disk', () => {
  it('fails the batch and every write queued behind it, then takes new ones', async () => {
    const clock = new ManualClock()
    const storage = new MemoryStorage(new MemoryDisk(clock))
    const store = await storage.open('documents')
    storage.disk.setFaults({ syncDelayMs: () => 5 })
    storage.disk.failNextWrite('full')
    const first = outcome(store.write(batch => batch.put(key('a'), key(''))))
    await clock.advance(1)
    const second = outcome(store.write(batch => batch.put(key('b'), key(''))))
    await clock.advance(10)
    expect([await first, await second]).to.deep.equal(['full', 'full'])
    const third = outcome(store.write(batch => batch.put(key('c'), key(''))))
    await clock.advance(10)
    expect(await third).to.equal('written')
    expect(['a', 'b', 'c'].filter(name => store.getSync(key(name)) !== undefined)).to.deep.equal(['c'])
  })
})

describe('what a simulated disk does besides', () => {
  it('may have written what an fsync failed to confirm', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    storage.disk.setFaults({ failWrite: () => 'io', landFailed: () => true })
    expect(await outcome(store.write(batch => batch.put(key('a'), key(''))))).to.equal('io')
    expect(store.getSync(key('a'))).to.not.equal(undefined)
  })

  it('fails reads of every kind', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    storage.disk.setFaults({ failRead: () => 'corrupt' })
    expect(() => store.getSync(key('a'))).to.throw('Checksum mismatch')
    expect(await outcome(store.getMany([key('a')]))).to.equal('corrupt')
    expect(await outcome(store.iterate({ gte: key('a'), lt: key('b') }).next(1))).to.equal('corrupt')
  })

  it('gives a copy that neither side changes for the other', async () => {
    const storage = new MemoryStorage()
    const store = await storage.open('documents')
    await store.write(batch => batch.put(key('a'), key('1')))
    expect(storage.disk.openStores).to.deep.equal(['documents'])
    const copy = await new MemoryStorage(storage.disk.copy()).open('documents')
    await store.write(batch => batch.put(key('a'), key('2')))
    await copy.write(batch => { batch.put(key('b'), key('3')) })
    expect(Buffer.from(copy.getSync(key('a'))!).toString()).to.equal('1')
    expect(store.getSync(key('b'))).to.equal(undefined)
    expect(Buffer.from(store.getSync(key('a'))!).toString()).to.equal('2')
  })
})

function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'written', error => error.code)
}
