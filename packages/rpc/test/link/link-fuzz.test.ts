/** Tests frames of a peer that holds the secret but is faulty or compromised. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { ShardReplica } from '@sectional/core'
import { messageHeaderType } from '../../src/schema/schema.ts'
import { RawPeer } from '../raw-peer.ts'
import { context, logged, TestWorld } from '../test-node.ts'
import type { TestNode } from '../test-node.ts'

/** The valid headers that are mutated. */
const shard = { incarnation: 'incarnation-1', begin: 0, end: 0xffffffff }
const validHeaders: readonly object[] = [
  { id: 1, call: { timeoutMs: 100, shard, openDocument: { id: 'doc', body: true } } },
  { id: 2, call: {
    timeoutMs: 100, shard,
    storeRevisions: { revisions: [{ id: 'd', path: { start: 1, ids: ['aa'] }, bodyLength: 3 }], revsLimit: 10 },
  } },
  { id: 3, call: {
    timeoutMs: 100, shard, updateDocuments: { edits: [{ id: 'd', revisionHash: 'aa', bodyLength: 3 }], revsLimit: 10 },
  } },
  { id: 4, call: { timeoutMs: 100, shard, scanChanges: { since: 0, body: true } } },
  { id: 5, call: { timeoutMs: 100, join: { node: 'x', address: 'x:1' } } },
  { id: 6, call: { timeoutMs: 100, propose: {} } },
  { id: 10, call: {
    timeoutMs: 100, shard, scanIndex: { read: { index: 'i', ranges: [{ lower: { key: Buffer.from([1]) } }] } },
  } },
  { id: 11, call: { timeoutMs: 100, shard, buildIndex: { definition: { map: 'm' }, waitMs: 10 } } },
  { id: 4, credit: { pages: 1, bytes: 10 } },
  { id: 4, cancel: {} },
  { id: 7, reply: { openDocument: {} } },
  { id: 8, page: { documents: { rows: [{ id: 'a', revision: '1-a', bodyLength: 3 }] } } },
  { id: 8, page: { indexRows: { rows: [{ keyLength: 3, id: 'a', valueLength: 3 }] } } },
  { raft: {
    from: 'x', to: 'b', term: 1,
    append: { previousIndex: 1, entries: [{ index: 2, term: 1, kind: 0, payloadLength: 3 }] },
  } },
  { heartbeat: {} }, { retire: {} }, { id: 9, end: {} }, { id: 9, failure: { code: 'no_such_code', reason: 'x' } },
]

const headerChanges = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })
const mutatedHeader = fc.tuple(fc.nat(validHeaders.length - 1), headerChanges, fc.nat(60))
  .map(([index, changes, cut]) => {
    const header = Buffer.from(messageHeaderType.encode(validHeaders[index] as object))
    for (const [at, value] of changes) header[at % header.length] = value
    return cut < header.length && cut % 3 === 0 ? header.subarray(0, cut) : header
  })

describe('a peer that breaks the protocol', () => {
  let world: TestWorld
  let node: TestNode
  beforeEach(async () => {
    world = new TestWorld()
    node = await world.node('b').start()
  })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  it('loses its link, with a reason and a log line, and has no other effect', async () => {
    const broken: readonly [string, (peer: RawPeer) => void, RegExp][] = [
      ['bad1', peer => { peer.sendFrame(Buffer.alloc(100)) }, /wrong tag/],
      ['bad2', peer => { peer.send([{ header: Buffer.from([0xff, 0xff, 0xff]) }]) }, /malformed Message/],
      ['bad3', peer => { peer.send([{ header: messageHeaderType.encode({ id: 1 }) }]) }, /unknown content/],
      ['bad4', peer => {
        const scan = {
          header: messageHeaderType.encode({ id: 1, call: { timeoutMs: 100, shard, openDocument: { id: 'doc' } } }),
        }
        peer.send([scan, scan])
      }, /began twice/],
    ]
    for (const [name, act, reason] of broken) {
      const peer = await RawPeer.dial(world, node, name)
      act(peer)
      await world.settle()
      assert.match(peer.closed ?? 'open', reason)
      assert.equal(logged(node, 'error', reason).length, 1)
    }
    assert.deepEqual(node.connected(), [])
  })

  it('loses its link when it sends content that its call does not take', async () => {
    const small = await world.node('c', { limits: { uploadBytes: 10 } }).start()
    const pending = () => new Promise<never>(() => {})
    Object.assign(small.replica!, { openDocument: pending })
    Object.assign(small.replica!.blobs, { writeBlob: pending })
    const upload = { id: 1, call: { timeoutMs: 100, shard, writeBlob: {} } }
    const read = { id: 1, call: { timeoutMs: 100, shard, openDocument: { id: 'doc' } } }
    const chunk = (bytes: number, last = false) => ({ bytes, message: { id: 1, chunk: { last } } })
    for (const [name, call, chunks, reason] of [
      ['fits', upload, [chunk(9), chunk(20), chunk(0, true)], undefined],
      ['goes-on', upload, [chunk(1, true), chunk(1)], /continued after its end/],
      ['ends-twice', upload, [chunk(1, true), chunk(0, true)], /continued after its end/],
      ['floods', upload, [chunk(10), chunk(1)], /exceeded its window/],
      ['no-upload', read, [chunk(1)], /takes no content/],
    ] as const) {
      const peer = await RawPeer.dial(world, small, name)
      peer.send([{ header: messageHeaderType.encode(call) }])
      for (const { bytes, message } of chunks) {
        peer.send([{ header: messageHeaderType.encode(message), payload: Buffer.alloc(bytes) }])
      }
      await world.settle()
      if (reason === undefined) assert.equal(peer.closed, undefined, name)
      else assert.match(peer.closed ?? 'open', reason, name)
      peer.close()
    }
  })

  it('gets an error for a malformed request, and keeps its link', async () => {
    const peer = await RawPeer.dial(world, node, 'careless')
    const malformed: readonly { readonly call: object; readonly payload?: Uint8Array }[] = [
      { call: { timeoutMs: 100, shard } },
      { call: { timeoutMs: 100, openDocument: { id: 'doc' } } },
      { call: { timeoutMs: Number.NaN, shard, openDocument: { id: 'doc' } } },
      { call: { timeoutMs: 100, shard: { ...shard, begin: 5, end: 4 }, openDocument: { id: 'doc' } } },
      { call: { timeoutMs: 100, shard, scanChanges: { since: -1 } } },
      { call: { timeoutMs: 100, shard, openDocument: { id: 'doc' } }, payload: Buffer.alloc(1) },
      { call: { timeoutMs: 100, shard, updateDocuments: { edits: [{ id: 'd', bodyLength: 5 }] } } },
      { call: { timeoutMs: 100, ask: { question: 'secrets' } } },
    ]
    peer.send(malformed.map(({ call, payload }, index) => ({
      header: messageHeaderType.encode({ id: index + 1, call }), ...(payload && { payload }),
    })))
    await world.settle()
    assert.equal(peer.closed, undefined)
    assert.deepEqual(
      peer.received.filter(({ content }) => content === 'failure').map(({ failure }) => failure.code),
      malformed.map(() => 'protocol'),
    )
    peer.close()
  })

  it('cannot crash the node with any frame that has a correct tag', async () => {
    const messages = fc.array(
      fc.tuple(fc.oneof(mutatedHeader, fc.uint8Array({ maxLength: 60 })), fc.uint8Array({ maxLength: 8 })),
      { minLength: 1, maxLength: 6 },
    )
    const unhandled: unknown[] = []
    const note = (error: unknown): void => { unhandled.push(error) }
    process.on('unhandledRejection', note)
    try {
      await fc.assert(fc.asyncProperty(messages, async sent => {
        const peer = await RawPeer.dial(world, node, 'fuzzer')
        for (const [header, payload] of sent) peer.send([{ header, payload }])
        await world.clock.advance(0)
        peer.close()
        await world.settle()
        assert.deepEqual(node.connected(), [])
      }), { numRuns: 150 })
    } finally {
      process.off('unhandledRejection', note)
    }
    assert.deepEqual(unhandled, [])
    const honest = await world.node('a').start([node])
    await world.settle()
    assert.equal((await honest.peers.control('b').status(context)).node, 'b')
  })

  it('that makes many calls and reads nothing is disconnected', async () => {
    const deaf = await world.node('c', { limits: { maxQueuedBytes: 2000 } }).start()
    const peer = await RawPeer.dial(world, deaf, 'deaf')
    peer.stopReading()
    for (let id = 1; id <= 200; id++) {
      peer.send(
        [{ header: messageHeaderType.encode({ id, call: { timeoutMs: 100, shard, openDocument: { id: 'doc' } } }) }],
      )
      if (id % 10 === 0) await world.settle()
    }
    await world.clock.advance(1000)
    assert.deepEqual(deaf.connected(), [])
    assert.equal(logged(deaf, 'info', /does not read/).length, 1)
    peer.close()
  })

  const reading = { descending: false, body: false, leaves: false }
  const answers: readonly [string, (from: ShardReplica) => Promise<unknown>, (id: number) => object, RegExp][] = [
    ['a call with a reply of another verb', from => from.countDocuments({ descending: false }, context),
      id => ({ id, reply: { openDocument: {} } }), /answered with something else/],
    ['a call with a page', from => from.countDocuments({ descending: false }, context),
      id => ({ id, page: { documents: { rows: [] } } }), /answered with something else/],
    ['a scan with a reply', from => collect(from.scanDocuments(reading, context)),
      id => ({ id, reply: { openDocument: {} } }), /answered with something else/],
    ['a scan with rows of another kind', from => collect(from.scanDocuments(reading, context)),
      id => ({ id, page: { purges: { rows: [] } } }), /rows of another kind/],
    ['an upload with a page', from => from.blobs.writeBlob(endless(), context),
      id => ({ id, page: { documents: { rows: [] } } }), /answered with something else/],
    ['an upload with a reply of another verb', from => from.blobs.writeBlob(endless(), context),
      id => ({ id, reply: { openDocument: {} } }), /answered with something else/],
    ['an upload with more grants than it used', from => from.blobs.writeBlob(endless(), context),
      id => ({ id, grant: { bytes: 1 } }), /granted more than was sent/],
  ]
  for (const [what, ask, answer, reason] of answers) {
    it(`that answers ${what} fails it and loses its link`, async () => {
      const peer = await RawPeer.dial(world, node, 'liar')
      const outcome = ask(node.remote({ identity: { node: 'liar' } } as TestNode)).then(() => 'ok', error => error.code)
      await world.settle()
      const id = peer.received.find(({ content }) => content === 'call')?.id
      peer.send([{ header: messageHeaderType.encode(answer(id)) }])
      await world.settle()
      assert.equal(await outcome, 'protocol')
      assert.match(peer.closed ?? 'open', reason)
    })
  }

  it('that sends more pages than it has credit for loses its link', async () => {
    const peer = await RawPeer.dial(world, node, 'pusher')
    const scan = node.remote({ identity: { node: 'pusher' } } as TestNode)
      .scanDocuments({ descending: false, body: false, leaves: false }, context)
    const pages = scan[Symbol.asyncIterator]()
    const first = pages.next()
    await world.settle()
    const id = peer.received.find(({ content }) => content === 'call')?.id
    const page = {
      header: messageHeaderType.encode({ id, page: { documents: { rows: [{ id: 'a', revision: '1-a' }] } } }),
    }
    peer.send(Array.from({ length: 20 }, () => page))
    await world.settle()
    assert.equal((await first).value?.length, 1)
    assert.match(peer.closed ?? 'open', /exceeded its credit/)
  })
})

async function collect(pages: AsyncIterable<unknown>): Promise<void> {
  for await (const _page of pages) { /* only its end matters */ }
}

/** An upload whose source gives nothing yet. */
async function* endless(): AsyncGenerator<Uint8Array> {
  await new Promise(() => {})
}
