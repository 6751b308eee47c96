import type { World } from '../world/world.ts'
import type { FinalDatabase } from './final-state.ts'

const knownMsMax = 60_000

/**
 * Waits until every node uses the design documents that the replicas have. A request uses older ones while their
 * comparison takes longer than a second, as with 64 shards that are read one after the other.
 *
 * @throws Failure `liveness`
 */
export async function designsKnown(world: World, databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
  for (const [name, { documents, record }] of databases) {
    const stored = new Map([...documents].flatMap(([id, { leaves: [winner] }]) =>
      id.startsWith('_design/') && winner?.deleted === false ? [[id, winner.revision] as const] : []))
    for (const node of world.nodes) {
      await world.eventually(`${node.name} to use the design documents of ${name}`, knownMsMax, async () => {
        if (node.inside === undefined) return 'it does not run'
        const used = await node.inside.coordinator.designDocuments(record).catch(String)
        if (typeof used === 'string') return used
        const other = [...stored].find(([id, revision]) => used.get(id)?.revision !== revision)?.[0]
          ?? [...used.keys()].find(id => !stored.has(id))
        return other === undefined ? null : `it uses another revision of ${other}`
      })
    }
  }
}
