import { expect } from 'chai'
import type { ReplicaCheckpoint, ShardId } from '@sectional/core'
import { UnconfirmedWrites } from '../../src/replicas/unconfirmed-writes.ts'

const shard: ShardId = { incarnation: 'a', range: { begin: 0, end: 9 } }
const node = 'lacks writes'

describe('unconfirmed writes', () => {
  it('are proved by the positions that were read after them, when two proofs overlap', async () => {
    const writes = new UnconfirmedWrites(() => 0)
    const miss = async (): Promise<void> => {
      writes.acknowledged(shard, node, Promise.resolve(false))
      await Promise.resolve()
    }
    const positions = [1, 2].map(() => Promise.withResolvers<readonly ReplicaCheckpoint[]>())
    await miss()
    const first = writes.proof(shard, node, () => positions[0]!.promise)
    await miss()
    const second = writes.proof(shard, node, () => positions[1]!.promise)
    positions[1]!.resolve([{ history: 'h', sequence: 2 }])
    await second
    positions[0]!.resolve([{ history: 'h', sequence: 1 }])
    const proof = await first
    expect(proof).to.deep.equal({ upTo: 2, positions: [{ history: 'h', sequence: 2 }] })
    writes.proved(shard, node, proof!)
    expect(writes.isBehind(shard, node, 2)).to.equal(false)
  })

  it('are not proved by positions that were read before them', async () => {
    const writes = new UnconfirmedWrites(() => 0)
    writes.acknowledged(shard, node, Promise.resolve(false))
    await Promise.resolve()
    const first = Promise.withResolvers<readonly ReplicaCheckpoint[]>()
    const second = Promise.withResolvers<readonly ReplicaCheckpoint[]>()
    const early = writes.proof(shard, node, () => first.promise)
    writes.acknowledged(shard, node, Promise.resolve(false))
    await Promise.resolve()
    const late = writes.proof(shard, node, () => second.promise)
    first.resolve([{ history: 'h', sequence: 1 }])
    const proof = await early
    second.resolve([{ history: 'h', sequence: 2 }])
    await late
    writes.proved(shard, node, proof!)
    expect(writes.isBehind(shard, node, 1)).to.equal(false)
    expect(writes.isBehind(shard, node, 2)).to.equal(true)
  })
})
