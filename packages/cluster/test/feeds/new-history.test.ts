import { expect } from 'chai'
import { defaultCoordinatorOptions } from '../../src/contracts/coordinator-options.ts'
import { bytes, plainCall, ReplicaWorld, request } from '../replica-world.ts'
import { WatchedReplica } from '../watched-replica.ts'

/** Calls reach the replica that the node has at that moment, also when an earlier call reached another one. */
class RebuiltWorld extends ReplicaWorld {
  override directory(from: string): ReturnType<ReplicaWorld['directory']> {
    const present = super.directory(from)
    return {
      ...present,
      replica: (node, shard) => new WatchedReplica({ replica: () => super.directory(from).replica(node, shard) }),
    }
  }
}

describe('a feed that follows a replica', () => {
  it('does not continue at its position when the replica has begun a new history', async () => {
    const world = new RebuiltWorld({ nodes: ['a', 'b'] })
    const store = (node: string, id: string): Promise<unknown> => {
      const revision = { id, path: { start: 1, ids: ['aa'] }, deleted: false, body: bytes({}) }
      return world.store(node).storeRevisions({ revisions: [revision], revsLimit: 1000 }, plainCall)
    }
    for (const id of ['first', 'second', 'third']) for (const node of world.nodes) await store(node, id)
    const feed = await world.coordinator('a').openChanges(world.db, {
      since: { kind: 'start' }, descending: false, limit: null, body: false, follow: true,
    }, request())
    const seen = new Set<string>()
    const readUntil = async (id: string): Promise<void> => {
      while (!seen.has(id)) {
        const event = await feed.next()
        if (event === null) throw new Error('the feed has ended')
        if (event.kind !== 'rows') continue
        for (const row of event.rows) {
          feed.take(event, row)
          seen.add(row.id)
        }
      }
    }
    await readUntil('third')
    const reading = readUntil('late')
    // What the feed knows of the replica is so old that it asks again when the next change wakes it.
    await world.clock.advance(defaultCoordinatorOptions.followRefreshMs)
    await store('b', 'late')
    const waking = store('a', 'other')
    // The replica is replaced before the feed has asked. The new one has fewer changes than the feed has read.
    world.wipe('a')
    await Promise.all([waking, store('a', 'late')])
    await world.during(reading)
    expect([...seen]).to.include.members(['first', 'second', 'third', 'late'])
    await feed.close()
  })
})
