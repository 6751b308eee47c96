import { expect } from 'chai'
import { shardRanges } from '@sectional/core'
import { ManualClock } from '@sectional/runtime'
import type { Log } from '@sectional/runtime'
import type { ClusterState, DatabaseRecord } from '../../src/control/cluster-state.ts'
import { DatabaseEvents } from '../../src/database-events/database-events.ts'
import type { DatabaseEventsParts } from '../../src/database-events/database-events.ts'
import type { CommitListener } from '../../src/replicas/local-replicas.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }

function database(name: string, incarnation: string): DatabaseRecord {
  return {
    name, incarnation, partitioned: false, n: 2, security: {}, revsLimit: 1000, purgedInfosLimit: 1000, autoPurge: {},
    shards: shardRanges(1).map(range => ({ range, replicas: ['a', 'b'].map(node => ({ node, filling: false })) })),
  }
}

describe('the recording of database events', () => {
  it('watches the writes that it leaves to others, also when it began while an earlier one watched its', async () => {
    const clock = new ManualClock()
    const db = database('db', 'one')
    const shard = { incarnation: 'one', range: db.shards[0]!.range }
    const stateWith = (...records: readonly DatabaseRecord[]): ClusterState => ({
      clusterId: 'c', index: 1, nodes: {}, settings: {}, databases: new Map(records.map(each => [each.name, each])),
    })
    let state = stateWith(db, database('_global_changes', 'first'))
    let changed: (state: ClusterState) => void = () => {}
    let committed: CommitListener = () => {}
    let linked = ['a', 'b']
    const written: string[] = []
    const events = new DatabaseEvents({
      runtime: { clock, log },
      control: {
        node: 'b', state: () => state, connectedNodes: () => linked,
        onChange: (listener: typeof changed) => { changed = listener; return () => {} },
      },
      local: {
        shards: () => [], replica: () => undefined,
        onCommit: (listener: CommitListener) => { committed = listener; return () => {} },
      },
      coordinator: {
        listDocuments: async () => ({ rows: [] }),
        openDocuments: async (_db: DatabaseRecord, ids: readonly string[]) => ids.map(() => null),
        updateDocuments: async ({ incarnation }: DatabaseRecord, writes: readonly { readonly id: string }[]) => {
          written.push(...writes.map(({ id }) => `${incarnation} ${id}`))
          return writes.map(() => ({ kind: 'written' }))
        },
      },
      enabled: () => true, replicas: () => 2,
    } as unknown as DatabaseEventsParts)
    events.start()
    await clock.advance(3000)
    committed(shard, true, false)
    await clock.advance(100)
    for (const records of [[db], [db, database('_global_changes', 'second')]]) {
      state = stateWith(...records)
      changed(state)
    }
    await clock.advance(10)
    committed(shard, true, false)
    await clock.advance(2000)
    expect(written.filter(each => each.includes('updated'))).to.deep.equal([])
    linked = ['b']
    await clock.advance(2000)
    expect(written.filter(each => each.includes('updated'))).to.deep.equal(['second updated:db'])
    await events.stop()
  })

  it('records an event again that another node has recorded at the same time', async () => {
    const clock = new ManualClock()
    const db = database('db', 'one')
    const state: ClusterState = {
      clusterId: 'c', index: 1, nodes: {}, settings: {},
      databases: new Map([db, database('_global_changes', 'log')].map(each => [each.name, each])),
    }
    let committed: CommitListener = () => {}
    let conflicts = 1
    const written: string[] = []
    const events = new DatabaseEvents({
      runtime: { clock, log },
      control: { node: 'a', state: () => state, connectedNodes: () => ['a', 'b'], onChange: () => () => {} },
      local: {
        shards: () => [], replica: () => undefined,
        onCommit: (listener: CommitListener) => { committed = listener; return () => {} },
      },
      coordinator: {
        listDocuments: async () => ({ rows: [] }),
        openDocuments: async (_db: DatabaseRecord, ids: readonly string[]) => ids.map(() => null),
        updateDocuments: async (_db: DatabaseRecord, writes: readonly { readonly id: string }[]) =>
          writes.map(({ id }) => {
            if (id === 'updated:db' && conflicts-- > 0) return { kind: 'conflict' }
            written.push(id)
            return { kind: 'written' }
          }),
      },
      enabled: () => true, replicas: () => 2,
    } as unknown as DatabaseEventsParts)
    events.start()
    await clock.advance(3000)
    committed({ incarnation: 'one', range: db.shards[0]!.range }, true, false)
    await clock.advance(3000)
    expect(written.filter(id => id.startsWith('updated'))).to.deep.equal(['updated:db'])
    await events.stop()
  })

  it('records what it has missed: databases that are gone or were created again, or have documents', async () => {
    const clock = new ManualClock()
    const kept = database('kept', 'one')
    const records = [kept, database('again', 'second'), database('new', 'two'), database('_global_changes', 'log')]
    const state: ClusterState = {
      clusterId: 'c', index: 1, nodes: {}, settings: {}, databases: new Map(records.map(each => [each.name, each])),
    }
    const row = (id: string, incarnation: string) => ({ id, body: Buffer.from(JSON.stringify({ incarnation })) })
    const rows = [
      row('created:again', 'first'), row('created:gone', 'lost'), row('created:kept', 'one'),
      row('created:recorded', 'x'), row('deleted:recorded', 'x'), row('updated:older', 'y'),
    ]
    const written: string[] = []
    const info = { documentCount: 1, deletedCount: 0 }
    const events = new DatabaseEvents({
      runtime: { clock, log },
      control: { node: 'a', state: () => state, connectedNodes: () => ['a'], onChange: () => () => {} },
      local: {
        shards: () => ['one', 'unknown'].map(incarnation => ({ incarnation, range: kept.shards[0]!.range })),
        replica: () => ({ upkeep: { replicaInfo: async () => info } }), onCommit: () => () => {},
      },
      coordinator: {
        listDocuments: async () => ({ rows: [rows] }),
        openDocuments: async (_db: DatabaseRecord, ids: readonly string[]) =>
          ids.map(id => {
            const incarnation = { 'created:new': 'two', 'created:again': 'first' }[id]
            return incarnation === undefined
              ? null
              : { ...row(id, incarnation), leaves: [{ revision: '1-x', deleted: false }] }
          }),
        updateDocuments: async (_db: DatabaseRecord, writes: readonly { readonly id: string }[]) => {
          written.push(...writes.map(({ id }) => id))
          return writes.map(() => ({ kind: 'written' }))
        },
      },
      enabled: () => true, replicas: () => 1,
    } as unknown as DatabaseEventsParts)
    events.start()
    await clock.advance(3000)
    expect(written.toSorted(), 'another node has recorded created:new meanwhile').to.deep.equal(
      ['created:again', 'deleted:again', 'deleted:gone', 'updated:kept'],
    )
    await events.stop()
  })

  it('goes on when a database is deleted right after a write', async () => {
    const clock = new ManualClock()
    const [db, events] = [database('db', 'one'), database('_global_changes', 'log')]
    const stateWith = (...records: readonly DatabaseRecord[]): ClusterState => ({
      clusterId: 'c', index: 1, nodes: {}, settings: {}, databases: new Map(records.map(each => [each.name, each])),
    })
    let state = stateWith(db, events)
    let changed: (state: ClusterState) => void = () => {}
    let committed: CommitListener = () => {}
    const written: string[] = []
    const recorder = new DatabaseEvents({
      runtime: { clock, log },
      control: {
        node: 'a', state: () => state, connectedNodes: () => ['a', 'b'],
        onChange: (listener: typeof changed) => { changed = listener; return () => {} },
      },
      local: {
        shards: () => [], replica: () => undefined,
        onCommit: (listener: CommitListener) => { committed = listener; return () => {} },
      },
      coordinator: {
        listDocuments: async () => ({ rows: [] }),
        openDocuments: async (_db: DatabaseRecord, ids: readonly string[]) => ids.map(() => null),
        updateDocuments: async (_db: DatabaseRecord, writes: readonly { readonly id: string }[]) => {
          written.push(...writes.map(({ id }) => id))
          return writes.map(() => ({ kind: 'written' }))
        },
      },
      enabled: () => true, replicas: () => 2,
    } as unknown as DatabaseEventsParts)
    recorder.start()
    await clock.advance(3000)
    written.length = 0
    committed({ incarnation: 'one', range: db.shards[0]!.range }, true, false)
    state = stateWith(events)
    changed(state)
    await clock.advance(3000)
    expect(written).to.include('deleted:db')
    await recorder.stop()
  })
})
