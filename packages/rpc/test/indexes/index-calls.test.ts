import assert from 'node:assert/strict'
import type {
  BuildIndexReply, BuildIndexRequest, CallContext, FindRequest, IndexHead, IndexReplica, IndexRow, ScanIndexRequest,
} from '@sectional/core'
import { messageHeaderType } from '../../src/schema/schema.ts'
import { RawPeer } from '../raw-peer.ts'
import { context, failure, shard, TestWorld } from '../test-node.ts'
import type { TestNode } from '../test-node.ts'

const state = { position: { history: 'h1', sequence: 7 }, readSequence: 9, version: 'v1', rowCount: 2 }
const head: IndexHead = { kind: 'head', ...state, rowsBefore: 1 }
const built: BuildIndexReply = { ...state, through: 7 }
const definition = { kind: 'javascript', map: 'source', reduce: null, options: {} }
const scan: ScanIndexRequest = { index: 'i1', through: 'newest', ranges: [{}], descending: false }

const find: FindRequest = {
  selector: '{}', source: { kind: 'documents' }, descending: false, documents: 'winner',
}

function build(waitMs: number): BuildIndexRequest {
  return { definition, through: 'newest', waitMs }
}

function row(number: number, keyBytes: number): IndexRow {
  return { kind: 'row', range: 0, key: '\u00ff'.repeat(keyBytes), id: 'doc', number, value: Buffer.from('v') }
}

/** A build that never ends. */
function waitingBuild({ waitMs }: BuildIndexRequest, { signal }: CallContext): Promise<BuildIndexReply> {
  if (waitMs === 0) return Promise.resolve(built)
  return new Promise((_resolve, reject) => { signal!.addEventListener('abort', () => reject(signal!.reason)) })
}

describe('calls on indexes over a link', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  async function pairServing(
    verbs: Partial<IndexReplica>, limits = {},
  ): Promise<readonly [TestNode, TestNode, IndexReplica]> {
    const [a, b] = await world.pair({ limits })
    b.indexes = verbs as IndexReplica
    return [a, b, a.remoteIndexes(b)]
  }

  async function pages(remote: IndexReplica): Promise<readonly (readonly (IndexHead | IndexRow)[])[]> {
    const found: (readonly (IndexHead | IndexRow)[])[] = []
    for await (const page of remote.scanIndex(scan, context)) found.push(page)
    return found
  }

  it('fail with not_hosted, and are not done, where the node has a replica but no indexes', async () => {
    const [a, b] = await world.pair()
    const remote = a.remoteIndexes(b)
    assert.equal((await a.remote(b).upkeep.replicaInfo(context)).sequence, 0)
    for (const error of [
      await failure(remote.buildIndex(build(0), context)), await failure(pages(remote)),
      await failure(a.peers.indexes('b', { ...shard, incarnation: 'gone' }).dropIndexes({ except: [] }, context)),
    ]) assert.deepEqual([error.code, error.nothingDone], ['not_hosted', true])
  })

  it('fail with not_hosted, and are not sent, when the peer runs a version without indexes', async () => {
    const node = await world.node('b').start()
    const peer = await RawPeer.dial(world, node, 'earlier', { versions: { min: 1, max: 2 } })
    const remote = node.peers.indexes('earlier', shard)
    for (const error of [await failure(remote.indexInfo('i1', context)), await failure(pages(remote))]) {
      assert.deepEqual([error.code, error.nothingDone], ['not_hosted', true])
      assert.match(error.message, /earlier version/)
    }
    const withoutFind = await RawPeer.dial(world, node, 'version-3', { versions: { min: 1, max: 3 } })
    const found = node.peers.indexes('version-3', shard).find(find, context)[Symbol.asyncIterator]()
    assert.match((await failure(found.next())).message, /earlier version/)
    withoutFind.close()
    await world.settle()
    assert.deepEqual(peer.received.filter(({ content }) => content === 'call'), [])
    peer.close()
  })

  for (const [side, limits] of [
    ['calling', { maxCallsOut: 1, maxWaitsOut: 2 }], ['serving', { maxCallsServed: 1, maxWaitsServed: 2 }],
  ] as const) {
    it(`have the limit of waiting calls on the ${side} side when they wait for a build`, async () => {
      const [, , remote] = await pairServing({ buildIndex: waitingBuild }, limits)
      const controller = new AbortController()
      const waiting: CallContext = { ...context, signal: controller.signal }
      const held = [1, 2].map(() => failure(remote.buildIndex(build(1000), waiting)))
      await world.settle()
      assert.equal((await failure(remote.buildIndex(build(1000), context))).code, 'overloaded')
      assert.deepEqual(await remote.buildIndex(build(0), context), built)
      controller.abort()
      for (const call of held) assert.equal((await call).code, 'cancelled')
    })
  }

  it('end with unreachable when they wait for a build on a node that stops', async () => {
    const [, b, remote] = await pairServing({ buildIndex: waitingBuild })
    const waiting = failure(remote.buildIndex(build(60_000), { timeoutMs: 60_000 }))
    await world.settle()
    const [error] = await world.during(Promise.all([waiting, b.peers.stop()]))
    assert.equal(error.code, 'unreachable')
    assert(world.clock.monotonic() < 1000, 'the stop does not wait for the build')
  })

  it('name the history of the replica that they are meant for', async () => {
    let seen: CallContext | undefined
    const [, , remote] = await pairServing({ dropIndexes: async (_request, served) => { seen = served } })
    await remote.dropIndexes({ except: [] }, { ...context, history: 'h1' })
    assert.equal(seen?.history, 'h1')
  })

  it('split pages of rows with long keys', async () => {
    const rows = Array.from({ length: 20 }, (_, number) => row(number, 1000))
    const [, , remote] = await pairServing({ async* scanIndex() { yield [head, ...rows] } }, { pageBytes: 4000 })
    const found = await pages(remote)
    assert.deepEqual(found.flat(), [head, ...rows])
    assert(found.length > 4, `${found.length} pages`)
  })

  it('stop the producer of rows with long keys when the reader is slow', async () => {
    let produced = 0
    const [, , remote] = await pairServing({
      async* scanIndex() { for (;;) yield [row(produced++, 1000)] },
    }, { streamBytes: 3000, streamPages: 100 })
    const iterator = remote.scanIndex(scan, context)[Symbol.asyncIterator]()
    await iterator.next()
    await world.settle()
    assert(produced <= 6, `${produced} pages were produced`)
    await iterator.return?.()
  })

  it('that are malformed fail alone, with protocol', async () => {
    const [, b] = await pairServing({})
    const peer = await RawPeer.dial(world, b, 'careless')
    const read = { index: 'i1', ranges: [{}] }
    const malformed: readonly object[] = [
      { buildIndex: {} },
      { buildIndex: { definition: { options: [{ name: 'collation' }] } } },
      { buildIndex: { definition: {}, waitMs: Number.NaN } },
      { buildIndex: { definition: {}, through: -1 } },
      { scanIndex: {} },
      { scanIndex: { read: { ...read, skip: 0.5 } } },
      { scanIndex: { read: { ...read, through: 2 ** 60 } } },
      { scanIndex: { read, after: { range: 1 } } },
      { reduceIndex: { read: { index: 'i1' }, after: { range: 0 } } },
      { find: { selector: '{}' } },
      { find: { selector: '{}', index: read, after: { range: 1 } } },
    ]
    peer.send(malformed.map((verb, index) => ({
      header: messageHeaderType.encode({
        id: index + 1, call: { timeoutMs: 100, shard: { incarnation: shard.incarnation, begin: 0, end: 1 }, ...verb },
      }),
    })))
    await world.settle()
    assert.equal(peer.closed, undefined)
    assert.deepEqual(
      peer.received.filter(({ content }) => content === 'failure').map(({ failure: each }) => each.code),
      malformed.map(() => 'protocol'),
    )
    peer.close()
  })
})
