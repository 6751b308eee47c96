import { expect } from 'chai'
import { DatabaseMap, type ClusterState, type DatabaseRecord } from '@sectional/cluster'
import { ReplicaError } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import { createMemoryRuntime, ManualClock } from '@sectional/runtime'
import { ShardHost } from '@sectional/shard'
import { HostedReplicas } from '../src/hosting/hosted-replicas.ts'

const whole = { begin: 0, end: 0xffffffff }

class Metadata {
  databases: ClusterState['databases'] = DatabaseMap.from([])
  confirmedNow = true
  memberAtStart = false
  readonly #listeners = new Set<() => void>()

  appliedState(): ClusterState {
    return { clusterId: 'c', index: 1, nodes: {}, databases: this.databases, settings: {} }
  }
  confirmed(): boolean { return this.confirmedNow }
  startedAsMember(): boolean { return this.memberAtStart }
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  set(databases: ClusterState['databases']): void { this.databases = databases; this.changed() }
  changed(): void { for (const listener of this.#listeners) listener() }
}

function database(name: string, nodes: readonly string[] = ['n']): DatabaseRecord {
  const shards = [{ range: whole, replicas: nodes.map(node => ({ node, filling: false })) }]
  return {
    name, incarnation: `of ${name}`, partitioned: false, n: 1, shards, security: {}, revsLimit: 1, purgedInfosLimit: 1,
    autoPurge: {},
  }
}

describe('the replicas of a node', () => {
  const clock = new ManualClock()
  let host: ShardHost
  let metadata: Metadata
  let hosted: HostedReplicas

  beforeEach(async () => {
    const runtime = { ...createMemoryRuntime({}), clock }
    host = await ShardHost.open(runtime)
    metadata = new Metadata()
    hosted = new HostedReplicas({ node: 'n', host, clock, log: runtime.log })
  })
  afterEach(async () => {
    await hosted.stop()
    await host.close()
  })

  const names = (): string[] => host.list().map(({ incarnation }) => incarnation.slice(3)).sort()

  it('are created and dropped as the metadata changes, each independently of the others', async () => {
    let reads = 0
    const records = Array.from({ length: 200 }, (_, at) => new Proxy(database(`db${at}`), {
      get: (target, member) => { reads += 1; return target[member as keyof DatabaseRecord] },
    }))
    hosted.start(metadata)
    metadata.set(DatabaseMap.from(records))
    await clock.advance(0)
    expect(names().length).to.equal(200)
    reads = 0
    let listed = 0
    const list = host.list.bind(host)
    host.list = () => { listed += 1; return list() }
    metadata.set(DatabaseMap.of(metadata.databases).with(database('more')).with(database('elsewhere', ['m'])))
    await clock.advance(0)
    expect(host.hosts({ incarnation: 'of more', range: whole })).to.equal(true)
    metadata.set(DatabaseMap.of(metadata.databases).without('more'))
    await clock.advance(0)
    expect(host.hosts({ incarnation: 'of more', range: whole })).to.equal(false)
    expect([reads, listed]).to.deep.equal([0, 0])
    expect(names().length).to.equal(200)
  })

  it('that the metadata does not contain are kept until the metadata is confirmed', async () => {
    await host.create({ incarnation: 'of gone', range: whole })
    metadata.confirmedNow = false
    hosted.start(metadata)
    metadata.set(DatabaseMap.from([database('kept')]))
    await clock.advance(10_000)
    expect(names()).to.deep.equal(['gone', 'kept'])
    metadata.confirmedNow = true
    metadata.changed()
    await clock.advance(0)
    expect(names()).to.deep.equal(['kept'])
  })

  it('are treated as damaged when the store that held them is gone, and not when they are new', async () => {
    const damaged: string[] = []
    hosted.onDamage({ damagedReplica: ({ incarnation }) => { damaged.push(incarnation) }, damagedBlob: () => {} })
    metadata.memberAtStart = true
    metadata.confirmedNow = false
    hosted.start(metadata)
    metadata.set(DatabaseMap.from([database('lost')]))
    await hosted.planned({ incarnation: 'of lost', range: whole })!.upkeep.replicaInfo({ timeoutMs: 1000 })
    await clock.advance(0)
    expect(damaged).to.deep.equal(['of lost'])
    metadata.confirmedNow = true
    metadata.changed()
    await clock.advance(0)
    metadata.set(DatabaseMap.of(metadata.databases).with(database('new')))
    await clock.advance(0)
    expect([names(), damaged]).to.deep.equal([['lost', 'new'], ['of lost']])
  })

  it('of a new node are not treated as damaged', async () => {
    const damaged: string[] = []
    hosted.onDamage({ damagedReplica: ({ incarnation }) => { damaged.push(incarnation) }, damagedBlob: () => {} })
    hosted.start(metadata)
    metadata.set(DatabaseMap.from([database('first')]))
    await clock.advance(0)
    expect([names(), damaged]).to.deep.equal([['first'], []])
  })

  describe('that a call has created', () => {
    const shard: ShardId = { incarnation: 'of short', range: whole }
    const call = { timeoutMs: 1000 }
    let slow: PromiseWithResolvers<void>
    let create: ShardHost['create']

    /** Starts with one database. The creation of its replica, and so the reconciliation, waits for `slow`. */
    beforeEach(async () => {
      slow = Promise.withResolvers<void>()
      create = host.create.bind(host)
      host.create = async (wanted, partitioned) => {
        if (wanted.incarnation === 'of slow') await slow.promise
        return create(wanted, partitioned)
      }
      hosted.start(metadata)
      await clock.advance(0)
      metadata.set(DatabaseMap.from([database('slow')]))
      await clock.advance(0)
    })

    function createShort(): void { metadata.set(DatabaseMap.of(metadata.databases).with(database('short'))) }
    function deleteShort(): void { metadata.set(DatabaseMap.of(metadata.databases).without('short')) }

    it('are dropped when their database is deleted before an earlier reconciliation has ended', async () => {
      createShort()
      await hosted.planned(shard)!.upkeep.replicaInfo(call)
      deleteShort()
      slow.resolve()
      await clock.advance(0)
      expect(names()).to.deep.equal(['slow'])
    })

    it('are dropped when the call runs after the deletion', async () => {
      createShort()
      const replica = hosted.planned(shard)!
      deleteShort()
      slow.resolve()
      await clock.advance(0)
      await replica.upkeep.replicaInfo(call).catch(() => undefined)
      await clock.advance(0)
      expect(names()).to.deep.equal(['slow'])
    })

    it('are dropped when the database is deleted while the replica is created for its indexes', async () => {
      const storing = Promise.withResolvers<void>()
      host.create = async (wanted, partitioned) => {
        if (wanted.incarnation === 'of short') await storing.promise
        return create(wanted, partitioned)
      }
      createShort()
      // The index is not there, so the call is refused, but it creates the replica first.
      const rows = hosted.indexesOrAbsent(shard).scanIndex(undefined as never, call)[Symbol.asyncIterator]()
      const answer = rows.next().catch(() => undefined)
      deleteShort()
      slow.resolve()
      await clock.advance(0)
      storing.resolve()
      await answer
      await clock.advance(0)
      expect(names()).to.deep.equal(['slow'])
    })

    it('are dropped, later, when the call failed after the replica was on the disk', async () => {
      host.create = async (wanted, partitioned) => {
        await create(wanted, partitioned)
        if (wanted.incarnation === 'of short') throw new ReplicaError('overloaded', 'too many calls')
        return await slow.promise as never
      }
      createShort()
      await hosted.planned(shard)!.upkeep.replicaInfo(call).catch(() => undefined)
      deleteShort()
      slow.resolve()
      await clock.advance(2000)
      expect(names()).to.deep.equal(['slow'])
    })
  })

  it('are created at a later attempt when the first one fails', async () => {
    const create = host.create.bind(host)
    host.create = () => Promise.reject(new Error('full'))
    hosted.start(metadata)
    metadata.set(DatabaseMap.from([database('late')]))
    await clock.advance(5000)
    expect(names()).to.deep.equal([])
    host.create = create
    await clock.advance(2000)
    expect(names()).to.deep.equal(['late'])
  })
})
