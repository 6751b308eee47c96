/** Reads the counts of documents over HTTP after the cluster has come to rest. */
import { partitionOf } from '@sectional/core'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { FinalDatabase, Findings } from './final-state.ts'

/**
 * The counts in the descriptions of a database and of one of its partitions, and the length of its list, are those of
 * the documents on the disks. Each database is read through one node.
 */
export async function countsShown(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>,
): Promise<Findings> {
  const findings: string[] = []
  for (const [name, { documents, record }] of databases) {
    const node = dice.pick(world.nodes).number
    const counts = async (path: string, shown: Readonly<Record<string, number>>): Promise<void> => {
      const { body, status } = await world.send(node, 'GET', path)
      for (const [member, count] of Object.entries(shown)) {
        if (status === 200 && body[member] === count) continue
        findings.push(`${path} through node ${node} (${status}) shows ${member} ${body?.[member]} instead of ${count}`)
      }
    }
    const ids = idsOf(documents, false)
    await counts(`/${name}`, {
      doc_count: ids.length,
      // Auto-purge may have removed tombstones since the disks were read.
      ...(Object.keys(record.autoPurge).length === 0 && { doc_del_count: idsOf(documents, true).length }),
    })
    await counts(`/${name}/_all_docs?limit=0`, { total_rows: ids.length })
    const partition = partitionOf(ids.length === 0 ? '' : dice.pick(ids))
    if (record.partitioned && partition !== null) {
      const count = ids.filter(id => partitionOf(id) === partition).length
      await counts(`/${name}/_partition/${partition}`, { doc_count: count })
    }
  }
  return findings
}

function idsOf(documents: FinalDatabase['documents'], deleted: boolean): string[] {
  return [...documents].flatMap(([id, { leaves: [winner] }]) => winner?.deleted === deleted ? [id] : [])
}
