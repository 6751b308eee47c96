import { expect } from 'chai'
import { ManualClock, MemoryDisk, MemoryLog, MemoryStorage, SeededRandom, StorageError } from '@sectional/runtime'
import type { Range } from '@sectional/runtime'
import { ShardKeys } from '../../src/records/key-layout.ts'
import { ShardDirectory, shardName } from '../../src/directory/shard-directory.ts'
import { SpaceReclaimer } from '../../src/directory/space-reclaimer.ts'
import { shardA } from '../shard-world.ts'

describe('the reclaimer of space', () => {
  it('clears a dropped shard a minute after the disk failed, without another drop', async () => {
    const clock = new ManualClock()
    const log = new MemoryLog()
    const store = await new MemoryStorage().open('documents')
    const directory = await ShardDirectory.open(store, new SeededRandom(1))
    const entry = await directory.add(shardA, false)
    const key = new ShardKeys(entry.prefix).body(1)
    await store.write(batch => batch.put(key, Buffer.from('body')))
    await directory.drop(shardName(shardA), entry)

    const clear = store.clear.bind(store)
    store.clear = () => Promise.reject(new StorageError('io', 'the disk fails'))
    const abort = new AbortController()
    const reclaimer = new SpaceReclaimer({ store, directory, clock, log, onCleared: () => {}, signal: abort.signal })
    reclaimer.start()
    await reclaimer.done()
    expect(store.getSync(key)).not.to.equal(undefined)
    expect(log.messages('warn')).to.have.length(1)

    store.clear = clear
    await clock.advance(60_000)
    await reclaimer.done()
    expect(store.getSync(key)).to.equal(undefined)
    expect(directory.dropped()).to.deep.equal([])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('does not try again when the node has stopped', async () => {
    const clock = new ManualClock()
    const store = await new MemoryStorage().open('documents')
    const directory = await ShardDirectory.open(store, new SeededRandom(1))
    const entry = await directory.add(shardA, false)
    await directory.drop(shardName(shardA), entry)
    store.clear = () => Promise.reject(new StorageError('io', 'the disk fails'))
    const abort = new AbortController()
    const reclaimer = new SpaceReclaimer({
      store, directory, clock, log: new MemoryLog(), onCleared: () => {}, signal: abort.signal,
    })
    reclaimer.start()
    // A shard that is dropped meanwhile makes a second run, which fails as well.
    reclaimer.start()
    await reclaimer.done()
    abort.abort()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('stops in the middle of a shard when the node stops', async () => {
    const clock = new ManualClock()
    const disk = new MemoryDisk(clock)
    const store = await new MemoryStorage(disk).open('documents')
    const directory = await ShardDirectory.open(store, new SeededRandom(1))
    const entry = await directory.add(shardA, false)
    const keys = new ShardKeys(entry.prefix)
    await store.write(batch => {
      for (let number = 1; number <= 9; number++) batch.put(keys.body(number), Buffer.of(1))
    })
    await directory.drop(shardName(shardA), entry)
    disk.setFaults({ clearPageKeys: () => 1, syncDelayMs: () => 10 })
    const abort = new AbortController()
    const log = new MemoryLog()
    const reclaimer = new SpaceReclaimer({ store, directory, clock, log, onCleared: () => {}, signal: abort.signal })
    reclaimer.start()
    await clock.advance(25)
    abort.abort()
    await clock.advance(10)
    await reclaimer.done()
    expect((await store.iterate(keys.all()).next(10)).length).to.equal(6)
    expect(directory.dropped()).to.deep.equal([entry.prefix])
    expect(log.messages('warn')).to.deep.equal([])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('clears neighbours together, and nothing of the shards between and beside them', async () => {
    const store = await new MemoryStorage().open('documents')
    const directory = await ShardDirectory.open(store, new SeededRandom(1))
    const keys: string[] = []
    for (const shard of [1, 2, 3, 4, 5].map(each => ({ ...shardA, incarnation: `shard${each}` }))) {
      const entry = await directory.add(shard, false)
      keys.push(new ShardKeys(entry.prefix).body(1))
      await store.write(batch => batch.put(keys.at(-1)!, Buffer.of(1)))
      if (entry.prefix !== 1 && entry.prefix !== 4) await directory.drop(shardName(shard), entry)
    }
    const compacted: Range[] = []
    store.approximateSize = async ({ gte }) => gte === ShardKeys.shards(2, 2).gte ? 4 * 1024 * 1024 : 0
    store.compact = async range => { compacted.push(range) }
    const reclaimer = new SpaceReclaimer({
      store, directory, clock: new ManualClock(), log: new MemoryLog(), onCleared: () => {},
      signal: new AbortController().signal,
    })
    reclaimer.start()
    await reclaimer.done()
    expect(keys.map(key => store.getSync(key) !== undefined)).to.deep.equal([true, false, false, true, false])
    expect(compacted, 'only a large range').to.deep.equal([ShardKeys.shards(2, 3)])
  })
})
