import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { newestPosition, scanTogether } from '@sectional/core'
import type {
  CallContext, ChangeReplica, ImmediateAnswer, IndexHead, IndexReplica, ReplicaCheckpoint,
} from '@sectional/core'
import { indexReplicaSuite, type MakeIndexes } from '@sectional/core/index-replica-suite'
import {
  LevelStorage, MemoryMachine, MemoryStorage, RealClock, SeededRandom, type Storage, Turns,
} from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { silentLog } from '../shard-world.ts'
import { suiteIndexer } from './index-world.ts'

const makeOn = (
  openStorage: () => Promise<{ storage: Storage; remove(): Promise<void> }>,
  readerOf: (indexes: ShardIndexes, newest: NewestPosition) => IndexReplica = indexes => indexes,
): MakeIndexes =>
  async (replica, indexer, documents) => {
    const newest = new NewestPosition(replica)
    const { storage, remove } = await openStorage()
    const clock = new RealClock()
    const store = await IndexStore.open({ storage, log: silentLog, random: new SeededRandom(1), clock })
    const indexes = new ShardIndexes({
      owner: 'shard', database: 'db', store, replica, newest: () => newest.position, indexer: suiteIndexer(indexer),
      queue: new BuildQueue(clock), clock, turns: new Turns(clock),
      find: { documents, machine: new MemoryMachine(clock) },
    })
    return {
      indexes: readerOf(indexes, newest),
      close: async () => {
        await indexes.close()
        await store.close()
        await remove()
      },
    }
  }

/** The position of a replica for reads from memory, which cannot wait for it. */
class NewestPosition {
  readonly #replica: ChangeReplica
  position: ReplicaCheckpoint | undefined

  constructor(replica: ChangeReplica) {
    this.#replica = replica
  }

  /** Asks for the position. It is the newest one until something is awaited. */
  async ask(): Promise<void> {
    this.position = await newestPosition(this.#replica, { timeoutMs: 5000 })
  }
}

/** Answers of reads from memory, of scans and of reductions. */
let immediateAnswers = [0, 0]

/** Compares the answers from memory before and after each read with the answer of the read. */
function readerFromMemory(indexes: ShardIndexes, newest: NewestPosition): IndexReplica {
  async function* read<Row>(
    verb: number, call: CallContext, fromMemory: () => ImmediateAnswer<Row> | undefined,
    pages: AsyncIterable<readonly (IndexHead | Row)[]>,
  ): AsyncGenerator<readonly (IndexHead | Row)[]> {
    if (call.history !== undefined || call.signal !== undefined) return yield* pages
    const answers: ImmediateAnswer<Row>[] = []
    const ask = async (): Promise<void> => {
      await newest.ask()
      const answer = fromMemory()
      if (answer !== undefined) answers.push(answer)
    }
    await ask()
    const called: (IndexHead | Row)[] = []
    for await (const page of pages) called.push(...page)
    // The call has brought the runs of its rows into memory.
    await ask()
    immediateAnswers[verb]! += answers.length
    for (const { head, rows } of answers) expect([head, ...rows]).to.deep.equal(called)
    yield called
  }
  return {
    buildIndex: (request, call) => indexes.buildIndex(request, call),
    scanIndex: (request, call) =>
      read(0, call, () => scanTogether([indexes.immediate], request)[0], indexes.scanIndex(request, call)),
    reduceIndex: (request, call) =>
      read(1, call, () => indexes.immediate.reduceIndex(request), indexes.reduceIndex(request, call)),
    find: (request, call) => indexes.find(request, call),
    indexInfo: (index, call) => indexes.indexInfo(index, call),
    dropIndexes: (request, call) => indexes.dropIndexes(request, call),
  }
}

indexReplicaSuite('in a memory store', makeOn(async () => ({ storage: new MemoryStorage(), remove: async () => {} })))

indexReplicaSuite('in LevelDB', makeOn(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'indexes-'))
  return {
    storage: new LevelStorage({ directory }),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}))

describe('reads of indexes from memory', () => {
  before(() => { immediateAnswers = [0, 0] })
  indexReplicaSuite('from memory where possible',
    makeOn(async () => ({ storage: new MemoryStorage(), remove: async () => {} }), readerFromMemory))
  after(() => {
    const [scans, reductions] = immediateAnswers
    expect(scans).to.be.above(100)
    expect(reductions).to.be.above(100)
  })
})
