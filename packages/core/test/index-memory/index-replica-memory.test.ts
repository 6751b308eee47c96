import { MemoryIndexReplica } from '../../src/index-memory/index-replica-memory.ts'
import { indexReplicaSuite } from '../../src/index-suite/index-replica-suite.ts'

const clock = {
  setTimer(ms: number, callback: () => void) {
    const timer = setTimeout(callback, ms)
    return { cancel: () => clearTimeout(timer) }
  },
}

indexReplicaSuite('in maps', async (replica, indexer, documents) => {
  const indexes = new MemoryIndexReplica({ replica, documents, indexer, clock })
  return { indexes, close: async () => indexes.close() }
})
