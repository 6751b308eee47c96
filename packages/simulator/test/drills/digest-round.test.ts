import { expect } from 'chai'
import type { ShardReplica } from '@sectional/core'
import { digestRound } from '../../src/drills/digest-round.ts'
import { World } from '../../src/world/world.ts'

const call = { timeoutMs: 1000 }

describe('a round of comparisons by digests', () => {
  it('makes replicas equal whose difference no checkpoint shows, also when nodes have many other shards', async () => {
    const replicas = new Map<string, Map<string, ShardReplica>>()
    const world = new World({
      seed: 1, nodes: 3, seeds: 1,
      observe: node => (shard, replica) => {
        if (!replicas.has(shard.incarnation)) replicas.set(shard.incarnation, new Map())
        replicas.get(shard.incarnation)!.set(node, replica)
        return replica
      },
    })
    const equal = async (): Promise<boolean> => {
      const digests = new Set<string>()
      for (const { number } of world.nodes) {
        const { body } = await world.send(number, 'GET', '/_node/_local/_replicas/differing')
        for (const { digest } of body.replicas as readonly { readonly digest: string }[]) digests.add(digest)
      }
      return digests.size === 1
    }
    await world.run(async () => {
      await world.start(1, 2, 3)
      await world.ready()
      await world.send(1, 'PUT', '/other?q=16&n=3')
      await world.send(1, 'PUT', '/differing?q=1&n=3')
      await world.write(1, 'differing', 'd', { value: 1 })
      await world.converge('differing')
      const { incarnation } = world.node(1).inside!.control.state()!.databases.get('differing')!
      const [first, second, third] = [1, 2, 3].map(number =>
        replicas.get(incarnation)!.get(world.node(number).name)!) as [ShardReplica, ShardReplica, ShardReplica]
      const { history, sequence } = await second.upkeep.replicaInfo(call)
      const checkpoint = { history, sequence: sequence + 100 }
      for (const other of [first, third]) {
        await other.storeRevisions({ revisions: [], revsLimit: 1000, checkpoint }, call)
      }
      const path = { start: 1, ids: ['0'.repeat(32)] }
      const conflict = { id: 'd', path, deleted: false, body: Buffer.from('{}') }
      await second.storeRevisions({ revisions: [conflict], revsLimit: 1000 }, call)
      await world.sleep(300_000)
      expect(await equal()).to.equal(false)
      await digestRound(world, equal)
      expect(await equal()).to.equal(true)
    })
  }).timeout(60_000)
})
