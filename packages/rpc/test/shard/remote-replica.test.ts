import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { shardReplicaSuite } from '@sectional/core/shard-replica-suite'
import { TestWorld } from '../test-node.ts'

shardReplicaSuite('remote, over a link in memory', async () => {
  const world = new TestWorld()
  const [a, b] = await world.pair()
  b.replica = new MemoryShardReplica({ history: `h${Math.random()}` })
  return { replica: a.remote(b), close: async () => { await world.stop() } }
})
