import { expect } from 'chai'
import { shardRanges } from '@sectional/core'
import { ManualClock } from '@sectional/runtime'
import type { Log } from '@sectional/runtime'
import type { ClusterState, DatabaseRecord } from '../../src/control/cluster-state.ts'
import { DatabaseEvents } from '../../src/database-events/database-events.ts'
import type { DatabaseEventsParts } from '../../src/database-events/database-events.ts'
import type { CommitListener } from '../../src/replicas/local-replicas.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
/** Longer than a node takes to record what it has missed, and each write after it. */
const recordedMs = 3000

function database(name: string, incarnation: string): DatabaseRecord {
  return {
    name, incarnation, partitioned: false, n: 2, security: {}, revsLimit: 1000, purgedInfosLimit: 1000, autoPurge: {},
    shards: shardRanges(1).map(range => ({ range, replicas: ['a', 'b'].map(node => ({ node, filling: false })) })),
  }
}

/** One node that records the events of databases. `written` has the incarnation of the log and the id of each write. */
class Recorder {
  readonly clock = new ManualClock()
  readonly written: string[] = []
  /** The same, apart for each request that writes documents of the log. */
  readonly writes: (readonly string[])[] = []
  readonly events: DatabaseEvents
  linked: readonly string[]
  /** Documents of the log: their ids, and the incarnation that each names. */
  readonly stored = new Map<string, string>()
  /** Documents that only a read of single documents shows. */
  readonly storedMeanwhile = new Map<string, string>()
  /** The next writes of these documents conflict, each once. */
  readonly conflicts = new Set<string>()
  /** Called before each write, when documents of the log are read for it. */
  beforeWrite: () => void = () => {}
  #state: ClusterState
  #changed: (state: ClusterState) => void = () => {}
  #committed: CommitListener = () => {}

  /** @param filled databases of whose documents this node has replicas that are not empty */
  constructor(
    node: string, databases: readonly DatabaseRecord[], linked: readonly string[] = ['a', 'b'],
    filled: readonly string[] = [], options: DatabaseEventsParts['options'] = {},
  ) {
    this.linked = linked
    this.#state = stateWith(databases)
    this.events = new DatabaseEvents({
      runtime: { clock: this.clock, log },
      control: {
        node, state: () => this.#state, connectedNodes: () => this.linked,
        onChange: (listener: (state: ClusterState) => void) => { this.#changed = listener; return () => {} },
      },
      local: {
        shards: () => filled.map(shardOf),
        replica: () => ({ upkeep: { replicaInfo: async () => ({ documentCount: 1, deletedCount: 0 }) } }),
        onCommit: (listener: CommitListener) => { this.#committed = listener; return () => {} },
      },
      coordinator: {
        listDocuments: async () => ({ rows: [[...this.stored].map(([id, incarnation]) => row(id, incarnation))] }),
        openDocuments: async (_db: DatabaseRecord, ids: readonly string[]) => {
          this.beforeWrite()
          return ids.map(id => {
            const incarnation = this.storedMeanwhile.get(id) ?? this.stored.get(id)
            return incarnation === undefined
              ? null : { ...row(id, incarnation), leaves: [{ revision: '1-x', deleted: false }] }
          })
        },
        updateDocuments: async ({ incarnation }: DatabaseRecord, writes: readonly { readonly id: string }[]) => {
          this.writes.push(writes.map(({ id }) => `${incarnation} ${id}`))
          return writes.map(({ id }) => {
            if (this.conflicts.delete(id)) return { kind: 'conflict' }
            this.written.push(`${incarnation} ${id}`)
            return { kind: 'written' }
          })
        },
      },
      enabled: () => true, replicas: () => linked.length, options,
    } as unknown as DatabaseEventsParts)
    this.events.start()
  }

  /** Replaces the databases of the cluster. */
  become(databases: readonly DatabaseRecord[]): void {
    this.#state = stateWith(databases)
    this.#changed(this.#state)
  }

  /** @param at the index of the shard that was written to */
  commit({ incarnation, shards }: DatabaseRecord, at = 0): void {
    this.#committed({ incarnation, range: shards[at]!.range }, true, false)
  }
}

function stateWith(databases: readonly DatabaseRecord[]): ClusterState {
  return {
    clusterId: 'c', index: 1, nodes: {}, settings: {}, databases: new Map(databases.map(each => [each.name, each])),
  }
}

function shardOf(incarnation: string): Parameters<CommitListener>[0] {
  return { incarnation, range: shardRanges(1)[0]! }
}

function row(id: string, incarnation: string): { readonly id: string; readonly body: Buffer } {
  return { id, body: Buffer.from(JSON.stringify({ incarnation })) }
}

describe('the recording of database events', () => {
  it('watches the writes that it leaves to others, also when it began while an earlier one watched its', async () => {
    const db = database('db', 'one')
    const recorder = new Recorder('b', [db, database('_global_changes', 'first')])
    const updates = (): string[] => recorder.written.filter(each => each.includes('updated'))
    await recorder.clock.advance(recordedMs)
    recorder.commit(db)
    await recorder.clock.advance(100)
    recorder.become([db])
    recorder.become([db, database('_global_changes', 'second')])
    await recorder.clock.advance(10)
    recorder.commit(db)
    await recorder.clock.advance(2000)
    expect(updates()).to.deep.equal([])
    recorder.linked = ['b']
    await recorder.clock.advance(2000)
    expect(updates()).to.deep.equal(['second updated:db'])
    await recorder.events.stop()
  })

  it('watches the writes to every shard that it leaves to others', async () => {
    const shards = shardRanges(3).map((range, at) => (
      { range, replicas: ['a', 'ab', 'cb'][at]!.split('').map(node => ({ node, filling: false })) }))
    const db: DatabaseRecord = { ...database('db', 'one'), shards }
    const recorder = new Recorder('b', [db, database('_global_changes', 'log')], ['a', 'b', 'c'])
    const updates = (): string[] => recorder.written.filter(each => each.includes('updated'))
    await recorder.clock.advance(recordedMs)
    for (const at of [1, 2]) {
      recorder.commit(db, at)
      await recorder.clock.advance(500)
    }
    expect(updates(), 'left to a and to c').to.deep.equal([])
    recorder.linked = ['b', 'c']
    await recorder.clock.advance(recordedMs)
    expect(updates(), 'the one that was left to a').to.deep.equal(['log updated:db'])
    await recorder.events.stop()
  })

  it('records an event again that another node has recorded at the same time', async () => {
    const db = database('db', 'one')
    const recorder = new Recorder('a', [db, database('_global_changes', 'log')])
    recorder.conflicts.add('updated:db')
    await recorder.clock.advance(recordedMs)
    recorder.commit(db)
    await recorder.clock.advance(recordedMs)
    expect(recorder.conflicts.size).to.equal(0)
    expect(recorder.written.filter(each => each.includes('updated'))).to.deep.equal(['log updated:db'])
    await recorder.events.stop()
  })

  it('records what it has missed: databases that are gone or were created again, or have documents', async () => {
    const databases = [
      database('kept', 'one'), database('again', 'second'), database('new', 'two'), database('_global_changes', 'log'),
    ]
    const recorder = new Recorder('a', databases, ['a'], ['one', 'unknown'])
    for (const [id, incarnation] of [
      ['created:again', 'first'], ['created:gone', 'lost'], ['created:kept', 'one'], ['created:recorded', 'x'],
      ['deleted:recorded', 'x'], ['updated:older', 'y'],
    ] as const) recorder.stored.set(id, incarnation)
    recorder.storedMeanwhile.set('created:new', 'two')
    await recorder.clock.advance(recordedMs)
    expect(recorder.written.toSorted(), 'another node has recorded created:new meanwhile').to.deep.equal(
      ['log created:again', 'log deleted:again', 'log deleted:gone', 'log updated:kept'],
    )
    await recorder.events.stop()
  })

  it('goes on when a database is deleted right after a write', async () => {
    const [db, events] = [database('db', 'one'), database('_global_changes', 'log')]
    const recorder = new Recorder('a', [db, events])
    await recorder.clock.advance(recordedMs)
    recorder.written.length = 0
    recorder.commit(db)
    recorder.become([events])
    await recorder.clock.advance(recordedMs)
    expect(recorder.written).to.include('log deleted:db')
    await recorder.events.stop()
  })

  describe('keeps the order of the events of a database', () => {
    const [first, second] = [database('db', 'one'), database('db', 'two')]
    const events = database('_global_changes', 'log')
    let recorder: Recorder

    /** Records `databases`, one event in each write unless `options` are others. */
    async function begin(
      databases: readonly DatabaseRecord[] = [], options: DatabaseEventsParts['options'] = { batchMax: 1 },
    ): Promise<void> {
      recorder = new Recorder('a', [...databases, events], ['a'], [], options)
      await recorder.clock.advance(recordedMs)
      recorder.written.length = 0
      recorder.writes.length = 0
    }
    afterEach(() => recorder.events.stop())

    it('when one write could record several of them, as its rows have no order', async () => {
      await begin([first], {})
      recorder.become([events])
      recorder.become([second, events])
      await recorder.clock.advance(recordedMs)
      expect(recorder.writes).to.deep.equal([['log deleted:db'], ['log created:db']])
    })

    it('when the write of its creation fails while it is deleted', async () => {
      await begin()
      recorder.beforeWrite = () => {
        recorder.beforeWrite = () => {}
        recorder.become([events])
        throw new Error('no replica answers')
      }
      recorder.become([first, events])
      await recorder.clock.advance(2 * recordedMs)
      expect(recorder.written).to.deep.equal(['log created:db', 'log deleted:db'])
    })

    it('when it is created, deleted and created again while a write of the first creation fails', async () => {
      await begin()
      recorder.beforeWrite = () => {
        recorder.beforeWrite = () => {}
        recorder.become([events])
        recorder.become([second, events])
        throw new Error('no replica answers')
      }
      recorder.become([first, events])
      await recorder.clock.advance(2 * recordedMs)
      expect(recorder.written).to.deep.equal(['log deleted:db', 'log created:db'])
    })

    it('when one of them is refused, without holding up those of others', async () => {
      await begin()
      for (const id of ['created:db', 'created:x']) recorder.conflicts.add(id)
      recorder.become([first, database('x', 'three'), database('y', 'four'), events])
      recorder.become([events])
      await recorder.clock.advance(2 * recordedMs)
      expect(recorder.written).to.have.length(6)
      expect(recorder.written.slice(0, 2)).to.deep.equal(['log created:y', 'log deleted:y'])
      for (const name of ['db', 'x']) {
        expect(recorder.written.filter(each => each.endsWith(`:${name}`))).to.deep.equal([
          `log created:${name}`, `log deleted:${name}`,
        ])
      }
    })

    it('when it is created and deleted again while the write of its earlier deletion waits', async () => {
      await begin([first])
      recorder.beforeWrite = () => {
        recorder.beforeWrite = () => {}
        recorder.become([second, events])
        recorder.become([events])
      }
      recorder.become([first, database('x', 'three'), events])
      recorder.become([events])
      await recorder.clock.advance(2 * recordedMs)
      expect(recorder.written.filter(each => each.endsWith(':db'))).to.deep.equal(['log created:db', 'log deleted:db'])
    })

    it('when it is created again before the recording has found out that it was deleted', async () => {
      recorder = new Recorder('a', [events], ['a'])
      recorder.stored.set('created:db', 'one')
      recorder.become([second, events])
      await recorder.clock.advance(recordedMs)
      expect(recorder.written).to.deep.equal(['log deleted:db', 'log created:db'])
    })
  })
})
