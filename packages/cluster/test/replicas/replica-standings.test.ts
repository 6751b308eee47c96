import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ReplicaStandings } from '../../src/replicas/replica-standings.ts'
import { ReplicaWorld } from '../replica-world.ts'

const info = {
  documentCount: 0, deletedCount: 0, purgeSequence: 0, oldestPurge: 0, purgesSeen: {}, catchingUp: false,
  compacting: false, sizes: { file: 0, active: 0, external: 0 },
}

describe('the standing of a replica', () => {
  const { db } = new ReplicaWorld({ nodes: ['a', 'b'], n: 2 })
  const [record] = db.shards
  const place = { id: { incarnation: db.incarnation, range: record!.range }, db, record: record!, activeCount: 2 }
  const peer = { node: 'a', local: true, active: true, replica: new MemoryShardReplica({ history: 'of a' }) }
  const options = {
    standingRefreshMs: 500, followRefreshMs: 10_000, readTimeoutMs: 1000, stateTimeoutMs: 1000,
  }

  it('names all replicas when each has every change of the others, and not while this one lacks a change', () => {
    const standings = new ReplicaStandings(new ManualClock(), options)
    const keep = (ofOther: number) =>
      standings.keep(peer, place, { ...info, history: 'of a', sequence: 3, seen: { 'of b': ofOther } })
    standings.reported('b', place.id, { history: 'of b', sequence: 5, seen: { 'of a': 3 } })
    expect(keep(4).source.all).to.equal(undefined)
    expect(keep(5).source.all).to.deep.equal([
      { node: 'a', history: 'of a', sequence: 3 }, { node: 'b', history: 'of b', sequence: 5 },
    ])
  })
})
