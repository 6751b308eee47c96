import { expect } from 'chai'
import { ReplicaError } from '@sectional/core'
import type { BuildIndexReply, BuildIndexRequest, CallContext, IndexDefinition } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import { DesignDocument, DesignDocuments } from '../../src/contracts/design-document.ts'
import { defaultBackgroundIndexOptions } from '../../src/views/background-index-options.ts'
import { BackgroundIndexes } from '../../src/views/background-indexes.ts'
import { definition, IndexWorld } from './index-world.ts'

const node = 'a'
const { delayMs, longMs, waitMs } = defaultBackgroundIndexOptions

describe('indexes in the background', () => {
  let world: IndexWorld
  let documents: DesignDocuments
  let enabled: boolean
  let updates: BackgroundIndexes
  /** Definitions of which no index can be built. */
  let broken: readonly IndexDefinition[]
  /** Definitions that come before the others. */
  let others: readonly IndexDefinition[]
  /** Answers builds in place of the replica, unless it returns undefined. */
  let buildOf: (request: BuildIndexRequest, call: CallContext) => Promise<BuildIndexReply | undefined>
  /** Number of times at which definitions were read. */
  let looked: number

  beforeEach(() => {
    world = new IndexWorld()
    documents = designed({})
    enabled = true
    looked = 0
    broken = []
    others = []
    buildOf = async () => undefined
    updates = new BackgroundIndexes({
      runtime: world.runtime(node), control: { node, state: () => world.state() },
      local: {
        onCommit: listener => world.onCommit(node, listener),
        shards: () => world.db.shards.map(({ range }) => ({ incarnation: world.db.incarnation, range })),
      },
      coordinator: { designDocuments: async () => documents },
      indexes: shard => ({
        buildIndex: async (request, call) => {
          if (broken.includes(request.definition)) throw new ReplicaError('compilation', 'no function')
          return await buildOf(request, call) ?? world.indexesOn(node, shard).buildIndex(request, call)
        },
      }),
      definitionsOf: (): readonly IndexDefinition[] => {
        looked++
        return [...broken, ...others, definition, { ...definition }]
      },
      enabled: () => enabled,
    })
    updates.start()
  })

  afterEach(async () => {
    await updates.stop()
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('are up to date some seconds after a change, without a query', async () => {
    await world.write([{ id: 'one', keys: [1], value: 1 }])
    expect(await known()).to.deep.equal([])
    await world.clock.advance(delayMs)
    const first = await known()
    expect(first).not.to.deep.equal([])
    await world.write([{ id: 'one', keys: [2], value: 1 }])
    await world.clock.advance(delayMs)
    expect(await known()).to.deep.equal(first.map(sequence => sequence + 1))
  })

  it('are built on all replicas of the node when a design document has changed', async () => {
    enabled = false
    await world.write([{ id: 'one', keys: [1], value: 1 }])
    await world.clock.advance(2 * delayMs)
    expect(await known()).to.deep.equal([])
    enabled = true
    updates.designChanged(world.db.incarnation)
    await world.clock.advance(delayMs)
    expect(await known()).to.have.lengthOf(world.db.shards.length)
  })

  it('are up to date although another one cannot be built', async () => {
    broken = [{ ...definition, map: 'broken' }]
    await world.write([{ id: 'one', keys: [1], value: 1 }])
    await world.clock.advance(delayMs)
    expect(await known()).to.have.lengthOf(1)
  })

  describe('while one takes long', () => {
    const long = { ...definition, map: 'long' }
    let asked: number
    let isBuilt: boolean
    /** The answer of a build that has read some changes, when `waitMs` have passed or all 100 were read. */
    const answer = async (readSequence: number, { waitMs: ms }: BuildIndexRequest, { signal }: CallContext) => {
      if (!isBuilt) await sleep(world.clock, ms, signal)
      signal?.throwIfAborted()
      const position = { history: 'h', sequence: isBuilt ? 100 : 0 }
      return { position, readSequence, through: 100, version: '', rowCount: 0 }
    }
    beforeEach(() => {
      asked = 0
      isBuilt = false
      others = [long]
      buildOf = async (request, call) => request.definition === long ? answer(asked++, request, call) : undefined
    })

    it('are up to date some seconds after a change', async () => {
      await world.write([{ id: 'one', keys: [1], value: 1 }])
      await world.clock.advance(delayMs + longMs)
      const first = await known()
      expect(first).not.to.deep.equal([])
      await world.write([{ id: 'one', keys: [2], value: 1 }])
      await world.clock.advance(delayMs)
      expect(await known()).to.deep.equal(first.map(sequence => sequence + 1))
    })

    it('and it is updated again after its end, with the changes that came meanwhile, but only once', async () => {
      await world.write([{ id: 'one', keys: [1], value: 1 }])
      await world.clock.advance(delayMs + longMs)
      expect(asked).to.equal(1)
      isBuilt = true
      await world.clock.advance(waitMs)
      expect(asked).to.equal(2)
      await world.clock.advance(2 * waitMs)
      expect(asked).to.equal(2)
    })

    it('and is given up without progress', async () => {
      await world.write([{ id: 'one', keys: [1], value: 1 }])
      await world.clock.advance(delayMs + longMs)
      asked = 0
      buildOf = async (request, call) => {
        if (request.definition !== long) return undefined
        asked++
        return answer(0, request, call)
      }
      await world.clock.advance(10 * waitMs)
      expect(asked).to.equal(1)
    })
  })

  it('are left to queries when the option or the design document says so', async () => {
    enabled = false
    await world.write([{ id: 'one', keys: [1], value: 1 }])
    await world.clock.advance(2 * delayMs)
    enabled = true
    documents = designed({ autoupdate: false })
    await world.write([{ id: 'two', keys: [1], value: 1 }])
    await world.clock.advance(2 * delayMs)
    expect(await known()).to.deep.equal([])
    expect(looked).to.equal(0)
  })

  it('end at the stop of the node although a build does not', async () => {
    world.holdBuilds(node)
    await world.write([{ id: 'one', keys: [1], value: 1 }])
    await world.clock.advance(delayMs)
    const stopped = updates.stop()
    await world.during(stopped)
    world.releaseBuilds(node)
  })

  /** Returns the sequences of the indexes that exist on the node. */
  async function known(): Promise<readonly number[]> {
    return (await world.positionsOn(node)).filter(sequence => sequence !== undefined)
  }
})

function designed(members: object): DesignDocuments {
  const document = new DesignDocument('_design/d', '1-a', Buffer.from(JSON.stringify(members)))
  return new DesignDocuments([[document.id, document]])
}
