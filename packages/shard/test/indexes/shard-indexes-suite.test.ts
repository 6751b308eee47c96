import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { indexReplicaSuite, type MakeIndexes } from '@sectional/core/index-replica-suite'
import { LevelStorage, MemoryStorage, RealClock, SeededRandom, type Storage, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { silentLog } from '../shard-world.ts'
import { suiteIndexer } from './index-world.ts'

const makeOn = (openStorage: () => Promise<{ storage: Storage; remove(): Promise<void> }>): MakeIndexes =>
  async (replica, indexer) => {
    const { storage, remove } = await openStorage()
    const store = await IndexStore.open({ storage, log: silentLog, random: new SeededRandom(1) })
    const clock = new RealClock()
    const indexes = new ShardIndexes({
      owner: 'shard', store, replica, indexer: suiteIndexer(indexer), queue: new BuildQueue(), clock,
      turns: new Turns(clock),
    })
    return {
      indexes,
      close: async () => {
        await indexes.close()
        await store.close()
        await remove()
      },
    }
  }

indexReplicaSuite('in a memory store', makeOn(async () => ({ storage: new MemoryStorage(), remove: async () => {} })))

indexReplicaSuite('in LevelDB', makeOn(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'indexes-'))
  return {
    storage: new LevelStorage({ directory }),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}))
