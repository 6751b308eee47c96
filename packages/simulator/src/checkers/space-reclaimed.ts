import { MemoryStorage, SeededRandom } from '@sectional/runtime'
import { documentStoreName, prefixMax, ShardDirectory, ShardKeys } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Findings } from './final-state.ts'

/**
 * Each key on the disks belongs to a replica, or to a dropped one whose keys the node will clear. The nodes must have
 * stopped, and no disk may have lost writes.
 */
export async function spaceReclaimed(nodes: readonly SimulatedNode[]): Promise<Findings> {
  const findings: string[] = []
  for (const { disk, name } of nodes) {
    const store = await new MemoryStorage(disk.copy()).open(documentStoreName)
    const directory = await ShardDirectory.open(store, new SeededRandom(1))
    const used = new Set([...Array.from(directory.entries(), ({ prefix }) => prefix), ...directory.dropped()])
    const keys = store.iterate(ShardKeys.shards(1, prefixMax), { values: false })
    for (let page = await keys.next(pageKeys); page.length > 0; page = await keys.next(pageKeys)) {
      const stray = page.find(([key]) => !used.has(ShardKeys.prefixOf(key)))
      if (stray === undefined) continue
      findings.push(`${name} has the key ${JSON.stringify(stray[0])} of a shard that it does not have`)
      break
    }
    await keys.close()
  }
  return findings
}

const pageKeys = 1000
