import { MemoryIndexReplica } from '@sectional/core/index-replica-memory'
import { indexReplicaSuite } from '@sectional/core/index-replica-suite'
import { RealClock } from '@sectional/runtime'
import { TestWorld } from '../test-node.ts'

indexReplicaSuite('remote, over a link in memory', async (replica, indexer, documents) => {
  const world = new TestWorld()
  const [a, b] = await world.pair()
  const indexes = new MemoryIndexReplica({ replica, documents, indexer, clock: new RealClock() })
  b.indexes = indexes
  return { indexes: a.remoteIndexes(b), close: async () => { indexes.close(); await world.stop() } }
})
