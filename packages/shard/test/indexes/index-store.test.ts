import { expect } from 'chai'
import { indexId } from '@sectional/core'
import type { IndexDefinition } from '@sectional/core'
import { ManualClock, MemoryDisk, MemoryLog, MemoryStorage, SeededRandom } from '@sectional/runtime'
import { readIndexStore } from '../../src/indexes/index-store-check.ts'
import { newState } from '../../src/indexes/index-records.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'

const definition: IndexDefinition = { kind: 'test', map: 'all', reduce: null, options: {} }
const owner = 'a'.repeat(32)

describe('the store of indexes', () => {
  let clock: ManualClock
  let disk: MemoryDisk
  let store: IndexStore

  beforeEach(async () => {
    clock = new ManualClock()
    disk = new MemoryDisk()
    store = await IndexStore.open({
      storage: new MemoryStorage(disk), log: new MemoryLog(), random: new SeededRandom(1), clock,
    })
    await create().written
  })

  it('reclaims an index although the disk was full when it was first replaced', async () => {
    disk.failNextWrite('full')
    expect(await outcome(create().written)).to.match(/No space/)
    await create().written
    await expectNoStrays(1)
  })

  it('reclaims an index although the disk was full when it was dropped', async () => {
    disk.failNextWrite('full')
    expect(await outcome(store.drop(owner, [indexId(definition)]))).to.match(/No space/)
    await create().written
    await expectNoStrays(1)
    await store.drop(owner, [indexId(definition)])
    await expectNoStrays(0)
  })

  it('reclaims a dropped index when the disk has space again, without a further call', async () => {
    disk.failNextWrite('full')
    expect(await outcome(store.drop(owner, [indexId(definition)]))).to.match(/No space/)
    disk.failNextWrite('full')
    await clock.advance(60_000)
    await store.cleared()
    await clock.advance(60_000)
    await expectNoStrays(0)
    await store.close()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('reclaims an index that is dropped while the last mark of another one is removed', async () => {
    const other = 'b'.repeat(32)
    await store.create(other, definition, 'test', newState('h', 'v')).written
    const write = store.store.write.bind(store.store)
    let writes = 0
    let second: Promise<void> | undefined
    store.store.write = fill => {
      const written = write(fill)
      // The first write records that the index was dropped, the second one removes the mark after its keys.
      if (++writes === 2) second = store.drop(other, [indexId(definition)])
      return written
    }
    await store.drop(owner, [indexId(definition)])
    await store.cleared()
    await second
    await expectNoStrays(0)
  })

  function create(): { readonly written: Promise<void> } {
    return store.create(owner, definition, 'test', newState('h', 'v'))
  }

  /** Expects that every record belongs to one of the indexes of the directory. */
  async function expectNoStrays(indexes: number): Promise<void> {
    await store.cleared()
    const contents = await readIndexStore(store.store)
    expect(contents.indexes).to.have.lengthOf(indexes)
    expect(contents.strays).to.deep.equal([])
    expect((await readPrefixes()).size).to.equal(1 + indexes)
  }

  /** Returns the prefixes of all records: that of the directory, and one for each index. */
  async function readPrefixes(): Promise<Set<string>> {
    return new Set(disk.entries('indexes').map(([key]) => key.slice(0, 4)))
  }
})

function outcome(work: Promise<unknown>): Promise<string> {
  return work.then(() => 'done', (error: Error) => error.message)
}
