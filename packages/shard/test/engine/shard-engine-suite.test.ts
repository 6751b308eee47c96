import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shardReplicaSuite } from '@sectional/core/shard-replica-suite'
import { LevelStorage, ManualClock, MemoryStorage } from '@sectional/runtime'
import type { Storage } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import { shardA, shardRuntime } from '../shard-world.ts'

let seed = 0

shardReplicaSuite('engine on memory', () => open(new MemoryStorage(), () => {}))

shardReplicaSuite('engine that counts partitions', () => open(new MemoryStorage(), () => {}, true))

shardReplicaSuite('engine on LevelDB', () => {
  const directory = mkdtempSync(join(tmpdir(), 'shard-suite-'))
  return open(new LevelStorage({ directory }), () => rmSync(directory, { recursive: true }))
})

async function open(storage: Storage, clean: () => void, partitioned = false) {
  const host = await ShardHost.open(shardRuntime(storage, new ManualClock(), ++seed))
  const replica = await host.create(shardA, partitioned)
  return {
    replica,
    close: async () => {
      await host.close()
      clean()
    },
  }
}
