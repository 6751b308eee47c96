/** Indexes of definitions that no design document has any more. */
import { MemoryStorage } from '@sectional/runtime'
import type { MemoryDisk } from '@sectional/runtime'
import { indexStoreName, readIndexStore } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Answer } from '../world/answer.ts'
import type { World } from '../world/world.ts'
import { diskCall, isDamage, openDisk } from './disk-contents.ts'
import type { FinalDatabase, Findings } from './final-state.ts'
import { usedQueryIndexes, usedViews } from './used-views.ts'

/**
 * Links may still be opened again after a partition, and a node that was killed may be silent until its links close. A
 * cleanup leaves out the nodes that cannot be reached.
 */
const linkedMsMax = 30_000
const pollMs = 500

/** Asks a node to remove the indexes that are not used. All nodes must run. */
export async function cleanViews(world: World, databases: ReadonlyMap<string, FinalDatabase>): Promise<Findings> {
  const findings: string[] = []
  const endMs = world.nowMs + linkedMsMax
  await world.eventually('node 1 to reach all nodes', linkedMsMax, async () => {
    const connected = world.node(1).inside?.control.connectedNodes() ?? []
    return world.nodes.find(({ name }) => !connected.includes(name))?.name ?? null
  })
  for (const database of databases.keys()) {
    const clean = (): Promise<Answer> => world.send(1, 'POST', `/${database}/_view_cleanup`, {})
    let { status, body } = await clean()
    while ((status === 503 || body?.error === 'timeout') && world.nowMs < endMs) {
      await world.sleep(pollMs);
      ({ status, body } = await clean())
    }
    if (status !== 202) findings.push(`_view_cleanup of ${database} was answered ${status} ${JSON.stringify(body)}`)
  }
  return findings
}

/**
 * After a cleanup, the disks have indexes of used definitions and of existing replicas only, and no record without an
 * index. The nodes must have stopped.
 */
export async function unusedIndexes(
  nodes: readonly SimulatedNode[], databases: ReadonlyMap<string, FinalDatabase>,
): Promise<Findings> {
  const used = new Set([...databases.values()]
    .flatMap(final => [...usedViews(final), ...usedQueryIndexes(final)].map(({ index }) => index)))
  const findings: string[] = []
  for (const { disk, name } of nodes) {
    const store = await new MemoryStorage(disk.copy()).open(indexStoreName)
    const contents = await readIndexStore(store).catch((error: unknown) => {
      // A store whose directory is damaged is removed at the next start of its node.
      if (isDamage(error)) return undefined
      throw error
    })
    if (contents === undefined) continue
    const { indexes, strays } = contents
    const histories = await historiesOn(disk)
    findings.push(...indexes.flatMap(({ owner, id }) => [
      ...(used.has(id) ? [] : [`${name} has the index ${id}, which no design document defines`]),
      ...(histories.has(owner) ? [] : [`${name} has an index of ${owner}, which is no replica`]),
    ]))
    if (strays.length > 0) findings.push(`${name} has ${strays.length} records of no index`)
  }
  return findings
}

/** Returns the histories of the replicas of a disk. Drills may have replaced those that the run ended with. */
async function historiesOn(disk: MemoryDisk): Promise<ReadonlySet<string>> {
  const host = await openDisk(disk)
  const infos = await Promise.all(host.list().map(async shard =>
    (await host.open(shard)).upkeep.replicaInfo(diskCall)))
  return new Set(infos.map(({ history }) => history))
}
