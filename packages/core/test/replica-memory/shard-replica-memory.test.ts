import { MemoryShardReplica } from '../../src/replica-memory/shard-replica-memory.ts'
import { shardReplicaSuite } from '../../src/replica-suite/shard-replica-suite.ts'

let lives = 0

shardReplicaSuite('in maps', async () => {
  const replica = new MemoryShardReplica({ history: `life-${++lives}` })
  return { replica, close: async () => {} }
})
