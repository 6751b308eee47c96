import type { ShardReplica } from '@sectional/core'
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

  it('is asked for again by a feed that continues only when it is too old', async () => {
    const clock = new ManualClock()
    const standings = new ReplicaStandings(clock, options)
    let asked = 0
    const replicaInfo = async () => ({ ...info, history: 'of a', sequence: ++asked, seen: {} })
    const counted = { ...peer, replica: { upkeep: { replicaInfo } } as unknown as ShardReplica }
    const recent = async (): Promise<number> => (await standings.recent(counted, place)).sequence
    expect([await recent(), await recent()]).to.deep.equal([1, 1])
    await clock.advance(options.followRefreshMs - 1)
    expect(await recent()).to.equal(1)
    await clock.advance(1)
    expect(await recent()).to.equal(2)
  })

  it('is asked for by one caller at a time', async () => {
    const standings = new ReplicaStandings(new ManualClock(), options)
    let asked = 0
    const ask = async (): Promise<void> => { asked++ }
    const reporting = (): Promise<void> => standings.reporting('b', place.id, ask)
    await Promise.all([reporting(), reporting()])
    expect(asked).to.equal(1)
    await reporting()
    expect(asked).to.equal(2)
  })
})
