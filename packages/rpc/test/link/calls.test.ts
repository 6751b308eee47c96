import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { noRivals, ReplicaError } from '@sectional/core'
import type { CallContext, DocumentRow, RaftMessage, ShardReplica } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { decodeRaft } from '../../src/control/raft-codec.ts'
import { PayloadReader } from '../../src/schema/payload.ts'
import { messageHeaderType } from '../../src/schema/schema.ts'
import { context, failure, shard, logged, TestWorld } from '../test-node.ts'
import type { TestNode } from '../test-node.ts'

const lookup = { id: 'doc', body: true, tree: false }
const scan = { descending: false, body: true, leaves: false }

/** A replica of which a test replaces single verbs. */
function replicaWith(verbs: Partial<ShardReplica>): ShardReplica {
  return Object.assign(new MemoryShardReplica({ history: 'h1' }), verbs)
}

function row(id: string, bytes: number): DocumentRow {
  return { id, revision: '1-a', body: Buffer.alloc(bytes, 0x20) }
}

describe('calls over a link', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  async function pairServing(
    verbs: Partial<ShardReplica>, limits = {},
  ): Promise<readonly [TestNode, TestNode, ShardReplica]> {
    const [a, b] = await world.pair({ limits })
    b.replica = replicaWith(verbs)
    return [a, b, a.remote(b)]
  }

  it('transmit the request id and the remaining time', async () => {
    let seen: CallContext | undefined
    const [, , remote] = await pairServing({ openDocument: async (_request, served) => { seen = served; return null } })
    await remote.openDocument(lookup, { timeoutMs: 1234, requestId: 'r-1' })
    assert.equal(seen?.timeoutMs, 1234)
    assert.equal(seen?.requestId, 'r-1')
  })

  it('fail when a text of theirs is not Unicode, which answers have as U+FFFD, and the link stays', async () => {
    const [a, b, remote] = await pairServing({
      openDocument: async ({ id }) => { throw new ReplicaError('protocol', `not ${id}\ud800`) },
      scanDocuments: async function* () { yield [row('a\ud800', 1)] },
    })
    const opened = await failure(remote.openDocument({ ...lookup, id: '_design/\ud800' }, context))
    assert.deepEqual([opened.code, opened.message], ['protocol', '"_design/\\ud800" is not valid Unicode text'])
    const start = { id: '\udfff', inclusive: true }
    const scanned = remote.scanDocuments({ ...scan, start }, context)[Symbol.asyncIterator]()
    assert.equal((await failure(scanned.next())).code, 'protocol')
    for await (const rows of remote.scanDocuments(scan, context)) assert.equal(rows[0]?.id, 'a\ufffd')
    assert.equal((await failure(remote.openDocument(lookup, context))).message, 'not doc\ufffd')
    assert.deepEqual([...logged(a, 'error', /link is closed/), ...logged(b, 'error', /link is closed/)], [])
  })

  it('time out, and abort the far end', async () => {
    let signal: AbortSignal | undefined
    const [, , remote] = await pairServing({
      openDocument: (_request, served) => { signal = served.signal; return new Promise(() => {}) },
    })
    const call = failure(remote.openDocument(lookup, { timeoutMs: 300 }))
    await world.clock.advance(299)
    assert.equal(signal?.aborted, false)
    await world.clock.advance(1)
    assert.equal((await call).code, 'timeout')
    assert.equal(signal?.aborted, true)
  })

  it('end at once when the caller cancels, and abort the far end', async () => {
    let signal: AbortSignal | undefined
    const [, , remote] = await pairServing({
      openDocument: (_request, served) => { signal = served.signal; return new Promise(() => {}) },
    })
    const controller = new AbortController()
    const call = failure(remote.openDocument(lookup, { ...context, signal: controller.signal }))
    await world.settle()
    controller.abort()
    assert.equal((await call).code, 'cancelled')
    await world.settle()
    assert.equal(signal?.aborted, true)
  })

  it('that were cancelled have an aborted signal, also when it is first read afterwards', async () => {
    let served: CallContext | undefined
    const [, , remote] = await pairServing({
      openDocument: (_request, call) => { served = call; return new Promise(() => {}) },
    })
    const controller = new AbortController()
    const call = failure(remote.openDocument(lookup, { ...context, signal: controller.signal }))
    await world.settle()
    controller.abort()
    await world.settle()
    assert.equal((await call).code, 'cancelled')
    assert.equal((served?.signal?.reason as ReplicaError).code, 'cancelled')
  })

  it('leave no listeners on a signal that many calls share', async () => {
    const [, , remote] = await pairServing({
      openDocument: async () => null, scanDocuments: async function* () { yield [row('a', 1)] },
    })
    const { signal } = new AbortController()
    const shared = { ...context, signal }
    for (let calls = 0; calls < 3; calls++) {
      await remote.openDocument(lookup, shared)
      for await (const _rows of remote.scanDocuments(scan, shared)) { /* only its end matters */ }
      await remote.blobs.writeBlob((async function* () { yield Buffer.from('x') })(), shared)
    }
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
  })

  it('without time are not sent', async () => {
    let served = 0
    const [, , remote] = await pairServing({ openDocument: async () => { served++; return null } })
    for (const timeoutMs of [0, -1, Number.NaN]) {
      const { code, nothingDone } = await failure(remote.openDocument(lookup, { timeoutMs }))
      assert.deepEqual([code, nothingDone], ['timeout', true])
    }
    await world.settle()
    assert.equal(served, 0)
  })

  it('abort the far end when the link breaks', async () => {
    let signal: AbortSignal | undefined
    const [, , remote] = await pairServing({
      openDocument: (_request, served) => { signal = served.signal; return new Promise(() => {}) },
    })
    const call = failure(remote.openDocument(lookup, context))
    await world.settle()
    world.hub.kill(() => true)
    assert.equal((await call).code, 'unreachable')
    assert.equal(signal?.aborted, true)
  })

  it('return every error code, and log unexpected errors instead of returning them', async () => {
    const codes = [
      'unreachable', 'timeout', 'cancelled', 'not_hosted', 'overloaded', 'storage', 'closed', 'protocol',
    ] as const
    let thrown: Error = new Error()
    const [, b, remote] = await pairServing({ openDocument: async () => { throw thrown } })
    for (const code of codes) {
      thrown = new ReplicaError(code, `because of ${code}`)
      const error = await failure(remote.openDocument(lookup, context))
      assert.deepEqual([error.code, error.message], [code, `because of ${code}`])
    }
    thrown = new TypeError('internal details')
    const error = await failure(remote.openDocument(lookup, context))
    assert.equal(error.code, 'storage')
    assert(!error.message.includes('internal details'))
    assert.equal(logged(b, 'error', /failed unexpectedly/).length, 1)
  })

  it('fail with the begin of a reason that is longer than a message may be, and keep their link', async () => {
    const reason = '\u00e9'.repeat(100_000)
    const [a, , remote] = await pairServing({ openDocument: async () => {
      throw new ReplicaError('compilation', reason)
    } }, { maxMessageBytes: 100_000, frameBytes: 1000 })
    const { code, message } = await failure(remote.openDocument(lookup, context))
    assert.deepEqual([code, message], ['compilation', reason.slice(0, 5000)])
    assert.deepEqual(a.connected(), ['b'])
  })

  it('fail with not_hosted for a shard that the node does not host', async () => {
    const [a] = await pairServing({})
    const elsewhere = a.peers.replica('b', { ...shard, incarnation: 'gone' })
    assert.equal((await failure(elsewhere.upkeep.replicaInfo(context))).code, 'not_hosted')
  })

  it('are bounded on the calling side', async () => {
    const [, , remote] = await pairServing({ openDocument: () => new Promise(() => {}) }, { maxCallsOut: 2 })
    const controller = new AbortController()
    const held = [1, 2].map(() => failure(remote.openDocument(lookup, { ...context, signal: controller.signal })))
    await world.settle()
    assert.equal((await failure(remote.openDocument(lookup, context))).code, 'overloaded')
    controller.abort()
    await Promise.all(held)
  })

  it('are bounded on the serving side, by number and by bytes', async () => {
    const [, , remote] = await pairServing({ storeRevisions: () => new Promise(() => {}) }, {
      maxCallsServed: 2, maxServedBytes: 1500,
    })
    const store = (bytes: number) => failure(remote.storeRevisions({
      revisions: [{ id: 'doc', path: { start: 1, ids: ['a'] }, deleted: false, body: Buffer.alloc(bytes) }],
      revsLimit: 10,
    }, { timeoutMs: 500 }))
    const held = [store(1000)]
    await world.settle()
    assert.equal((await store(1000)).code, 'overloaded')
    held.push(store(10))
    await world.settle()
    assert.equal((await store(10)).code, 'overloaded')
    await world.clock.advance(600)
    for (const call of held) assert.equal((await call).code, 'timeout')
  })

  it('are served one after the other, however many bytes they have together', async () => {
    const [, , remote] = await pairServing({ storeRevisions: async () => noRivals }, { maxServedBytes: 1500 })
    const revision = { id: 'doc', path: { start: 1, ids: ['a'] }, deleted: false, body: Buffer.alloc(1000) }
    for (let count = 0; count < 5; count++) {
      assert.deepEqual(await remote.storeRevisions({ revisions: [revision], revsLimit: 10 }, context), noRivals)
    }
  })

  for (const [side, limits] of [
    ['calling', { maxCallsOut: 1, maxWaitsOut: 2 }], ['serving', { maxCallsServed: 1, maxWaitsServed: 2 }],
  ] as const) {
    it(`have a limit of their own on the ${side} side when they wait for changes`, async () => {
      const [, , remote] = await pairServing({ waitForChange: async (seen, served) => {
        if (seen.history !== '') {
          await new Promise(resolve => served.signal?.addEventListener('abort', resolve, { once: true }))
        }
        return { history: 'h1', sequence: 0 }
      } }, limits)
      const wait = (callContext: CallContext) =>
        failure(remote.waitForChange({ history: 'h1', sequence: 0 }, callContext))
      const controller = new AbortController()
      const waiting = [1, 2].map(() => wait({ ...context, signal: controller.signal }))
      await world.settle()
      assert.equal((await wait(context)).code, 'overloaded')
      assert.equal(await remote.openDocument(lookup, context), null)
      // A call with an empty history is answered at once and does not count as waiting.
      assert.deepEqual(await remote.waitForChange({ history: '', sequence: 0 }, context), {
        history: 'h1', sequence: 0,
      })
      controller.abort()
      for (const call of await Promise.all(waiting)) assert.equal(call.code, 'cancelled')
      await world.settle()
      const again = wait({ timeoutMs: 100 })
      await world.clock.advance(100)
      assert.equal((await again).code, 'timeout')
    })
  }

  it('about metadata and on replicas have separate limits', async () => {
    const [a, b, remote] = await pairServing({ openDocument: () => new Promise(() => {}) }, {
      maxCallsServed: 1, maxControlCallsServed: 1,
    })
    const held = [failure(remote.openDocument(lookup, { timeoutMs: 500 }))]
    await world.settle()
    assert.equal((await failure(remote.openDocument(lookup, context))).code, 'overloaded')
    assert.equal((await a.peers.control(b.identity.node).status(context)).node, 'b')
    await world.clock.advance(500)
    assert.equal((await held[0])?.code, 'timeout')
  })

  it('are refused while too many bytes wait to be sent', async () => {
    const [, , remote] = await pairServing({}, { maxQueuedBytes: 1000 })
    const body = Buffer.alloc(2000)
    const store = () =>
      remote.storeRevisions(
        { revisions: [{ id: 'doc', path: { start: 1, ids: ['a'] }, deleted: false, body }], revsLimit: 10 }, context,
      )
    const first = store()
    await Promise.resolve()
    assert.equal((await failure(store())).code, 'overloaded')
    await first
  })

  it('have an unknown outcome when their answer is refused because too many bytes wait to be sent', async () => {
    let served = 0
    const [, , remote] = await pairServing({ openDocument: async () => {
      served++
      return { leaves: [{ revision: '1-a', deleted: false }], sequence: 1, body: Buffer.alloc(2000) }
    } }, { maxQueuedBytes: 1000 })
    const [first, second] = [remote.openDocument(lookup, context), failure(remote.openDocument(lookup, context))]
    assert.equal((await first)?.body?.length, 2000)
    const { code, nothingDone } = await second
    assert.deepEqual({ code, nothingDone, served }, { code: 'overloaded', nothingDone: false, served: 2 })
  })

  it('transmit messages of many frames, and refuse a message over the limit before it is sent', async () => {
    const limits = { frameBytes: 1000, maxMessageBytes: 100_000, pageBytes: 1000 }
    const [a, b, remote] = await pairServing({}, limits)
    const store = (bytes: number) => remote.storeRevisions({
      revisions: [{ id: 'doc', path: { start: 1, ids: ['a'.repeat(32)] }, deleted: false, body: Buffer.from(
        JSON.stringify({ text: 'x'.repeat(bytes) }),
      ) }],
      revsLimit: 10,
    }, context)
    await store(90_000)
    assert.equal((await remote.openDocument(lookup, context))?.body?.length, 90_011)
    const error = await failure(store(100_001))
    assert.equal(error.code, 'protocol')
    assert.match(error.message, /more than the limit of 100000 bytes/)
    b.replica = replicaWith({
      openDocument: async () => ({
        leaves: [{ revision: '1-a', deleted: false }], sequence: 1, body: Buffer.alloc(100_001),
      }),
    })
    assert.match((await failure(remote.openDocument(lookup, context))).message, /request it in parts/)
    assert.deepEqual(a.connected(), ['b'])
  })

  it('return the positions of revisions that have rivals or were refused', async () => {
    const reply = { rivals: [0], refused: [1, 300] }
    const [, , remote] = await pairServing({ storeRevisions: async () => reply })
    assert.deepEqual(await remote.storeRevisions({ revisions: [], revsLimit: 1 }, context), reply)
  })

  it('transmit the greatest generations, limits and sequences exactly', async () => {
    let seen: unknown
    const [, , remote] = await pairServing({ storeRevisions: async request => { seen = request; return noRivals } })
    const start = Number.MAX_SAFE_INTEGER
    const request = {
      revisions: [{ id: 'doc', path: { start, ids: ['a'] }, deleted: true, body: Buffer.from('{}') }],
      locals: [{ id: 'l', revision: start, stamp: start, body: null }],
      revsLimit: start,
      checkpoint: { history: '__proto__', sequence: start },
    }
    await remote.storeRevisions(request, context)
    assert.deepEqual(seen, { ...request, revsLimit: 0xffffffff })
  })

  it('made in one turn of the event loop share one frame', async () => {
    const [a, , remote] = await pairServing({})
    const frames = () => a.metric('sectional_rpc_frames_total', 'out')
    const before = await frames()
    await Promise.all(Array.from({ length: 50 }, () => remote.openDocument(lookup, context)))
    assert.equal(await frames() - before, 1)
    assert.equal(await a.metric('sectional_rpc_calls_total', 'openDocument', 'ok'), 50)
  })

  it('to a control peer transmit JSON and every kind of reply', async () => {
    const [a, b] = await pairServing({})
    const control = a.peers.control('b')
    assert.deepEqual(await control.status(context), {
      node: 'b', address: 'b:1', clusterId: 'c1', fresh: false, leader: null,
    })
    assert.deepEqual(await control.propose({ create: 'db' }, context), {
      kind: 'applied', index: 7, result: { command: { create: 'db' } },
    })
    const question = { question: 'stats', argument: { deep: [1, null] } } as const
    assert.deepEqual(await control.ask(question, context), { ...question, from: 'a' })
    const bare = { question: 'system', argument: undefined } as const
    assert.deepEqual(await control.ask(bare, context), { question: 'system', from: 'a' })
    await control.designChanged('incarnation', context)
    assert.deepEqual(b.designChanges, ['incarnation'])
  })

  it('of consensus are sent one way and arrive in order, whatever their type', async () => {
    const [a, b] = await pairServing({})
    const address = { from: 'a', to: 'b', term: 3 }
    const messages: RaftMessage[] = [
      { ...address, type: 'vote-request', lastIndex: 2 ** 40, lastTerm: 2, preVote: true },
      { ...address, type: 'vote-reply', granted: true, preVote: false },
      {
        ...address, type: 'append', previousIndex: 4, previousTerm: 2, commit: 3, round: 9, entries: [
          { index: 5, term: 3, kind: 'noop', payload: new Uint8Array() },
          { index: 6, term: 3, kind: 'command', payload: new Uint8Array([1, 2, 3]) },
          { index: 7, term: 3, kind: 'configuration', payload: new Uint8Array([4]) },
        ],
      },
      { ...address, type: 'append-reply', success: false, matchIndex: 1, conflictIndex: 2, round: 9 },
      {
        ...address, type: 'snapshot', index: 8, snapshotTerm: 3, configuration: { voters: ['a', 'b'], learners: ['c'] },
        state: new Uint8Array([9, 9]), offset: 7, totalBytes: 20, checksum: 0xfedcba98, round: 1,
      },
      { ...address, type: 'snapshot-reply', index: 8, received: 9, round: 1 },
    ]
    for (const message of messages) a.peers.control('b').sendRaft(message)
    await world.settle()
    assert.deepEqual(b.raft.map(withPlainBytes), messages)
  })

  it('of consensus with a snapshot in one piece, as in version 1 of the protocol, are accepted', () => {
    const wire = {
      from: 'a', to: 'b', term: 3, snapshot: { index: 8, snapshotTerm: 3, voters: ['a'], learners: [], round: 1 },
    }
    const { raft } = messageHeaderType.decode(messageHeaderType.encode({ raft: wire }))
    const message = decodeRaft(raft, new PayloadReader(new Uint8Array([1, 2, 3])))
    assert.deepEqual(
      message.type === 'snapshot' && [message.offset, message.totalBytes, message.checksum, message.state.length],
      [0, 3, null, 3],
    )
  })

  it('of consensus are dropped rather than queued without bound', async () => {
    const [a, b] = await pairServing({}, { maxRaftQueuedBytes: 5000 })
    const message: RaftMessage = {
      from: 'a', to: 'b', term: 1, type: 'snapshot', index: 1, snapshotTerm: 1,
      configuration: { voters: [], learners: [] }, state: new Uint8Array(1000), offset: 0, totalBytes: 1000,
      checksum: 0, round: 1,
    }
    for (let i = 0; i < 100; i++) a.peers.control('b').sendRaft(message)
    await world.settle()
    assert(b.raft.length >= 5 && b.raft.length <= 6)
    assert.equal(await a.metric('sectional_rpc_raft_dropped_total'), 100 - b.raft.length)
  })
})

describe('scans over a link', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  /** Produces endless pages of one row; counts the pages and records whether the scan was ended. */
  function endless(bytes: number) {
    const state = { produced: 0, ended: 0 }
    async function* pages(): AsyncGenerator<readonly DocumentRow[]> {
      try {
        for (;;) yield [row(`doc${state.produced++}`, bytes)]
      } finally {
        state.ended++
      }
    }
    return { state, verbs: { scanDocuments: pages } as Partial<ShardReplica> }
  }

  async function open(verbs: Partial<ShardReplica>, limits = {}, callContext: CallContext = context) {
    const [a, b] = await world.pair({ limits })
    b.replica = replicaWith(verbs)
    return { a, b, pages: a.remote(b).scanDocuments(scan, callContext)[Symbol.asyncIterator]() }
  }

  it('stop the producer when the reader is slow: by pages', async () => {
    const { state, verbs } = endless(10)
    const { pages } = await open(verbs, { streamPages: 3 })
    await pages.next()
    await world.settle()
    assert(state.produced <= 5, `${state.produced} pages`)
    for (let i = 0; i < 20; i++) assert.equal((await pages.next()).value[0].id, `doc${i + 1}`)
    await pages.return?.()
  })

  it('stop the producer when the reader is slow: by bytes', async () => {
    const { state, verbs } = endless(1000)
    const { pages } = await open(verbs, { streamPages: 1000, streamBytes: 3000 })
    await pages.next()
    await world.settle()
    assert(state.produced <= 6, `${state.produced} pages`)
    await pages.return?.()
  })

  it('stop the producer of a large blob when the reader is slow', async () => {
    const [a, b] = await world.pair()
    const remote = a.remote(b)
    const chunkOf = (index: number): Uint8Array => Buffer.alloc(10_000, index % 251)
    let produced = 0
    Object.assign(b.replica!.blobs, {
      async *readBlob() { while (produced < 600) yield chunkOf(produced++) },
    })
    const chunks = remote.blobs.readBlob({ hash: 'ab'.repeat(32), span: null }, context)[Symbol.asyncIterator]()
    const read: Uint8Array[] = []
    for (let next = chunks.next(); ; next = chunks.next()) {
      await world.settle()
      const { value, done } = await next
      if (done === true) break
      read.push(value)
      if (read.length === 1) assert(produced < 300, `${produced} chunks of 10,000 bytes were read ahead`)
    }
    const expected = Buffer.concat(Array.from({ length: 600 }, (_, index) => chunkOf(index)))
    assert(Buffer.concat(read).equals(expected))
  })

  it('cancel the far end when the reader stops early', async () => {
    const { state, verbs } = endless(10)
    const { a, b } = await open(verbs)
    for await (const page of a.remote(b).scanDocuments(scan, context)) {
      assert.equal(page.length, 1)
      break
    }
    await world.settle()
    assert.equal(state.ended, 1)
  })

  it('end a waiting read when the reader stops', async () => {
    const { pages } = await open({ scanDocuments: async function* () { await new Promise(() => {}) } })
    const waiting = pages.next()
    await world.settle()
    await pages.return?.()
    assert.deepEqual(await waiting, { done: true, value: undefined })
  })

  it('end with an error when the link breaks, and end the far end', async () => {
    const { state, verbs } = endless(10)
    const { pages } = await open(verbs, { streamPages: 2 })
    await pages.next()
    await world.settle()
    world.hub.kill(() => true)
    await world.settle()
    const error = await failure((async () => { while (!(await pages.next()).done); })())
    assert.equal(error.code, 'unreachable')
    assert.deepEqual(await pages.next(), { done: true, value: undefined })
    assert.equal(state.ended, 1)
  })

  it('bound the wait for each page, not the time of the reader', async () => {
    const { verbs } = endless(10)
    const { pages } = await open(verbs, { streamPages: 1 }, { timeoutMs: 1000 })
    for (let i = 0; i < 5; i++) {
      await pages.next()
      await world.clock.advance(2000)
    }
    await pages.return?.()
  })

  it('time out when no page comes', async () => {
    const { pages } = await open({ scanDocuments: async function* () { await new Promise(() => {}) } }, {}, {
      timeoutMs: 1000,
    })
    const waiting = failure(pages.next())
    await world.clock.advance(1000)
    assert.equal((await waiting).code, 'timeout')
  })

  it('are ended at the far end when the reader takes nothing for a long time', async () => {
    const { state, verbs } = endless(10)
    const { pages } = await open(verbs, { streamPages: 2, streamStallMs: 10_000 })
    await pages.next()
    await world.clock.advance(11_000)
    assert.equal(state.ended, 1)
    assert.equal((await failure((async () => { while (!(await pages.next()).done); })())).code, 'timeout')
  })

  it('pass the error of the far end on after the pages before it', async () => {
    const { pages } = await open({
      scanDocuments: async function* () {
        yield [row('one', 10)]
        throw new ReplicaError('storage', 'the disk is gone')
      },
    })
    assert.equal((await pages.next()).value[0].id, 'one')
    assert.equal((await failure(pages.next())).code, 'storage')
  })

  it('split large pages', async () => {
    const rows = Array.from({ length: 100 }, (_, i) => row(`doc${i}`, 100))
    const { pages } = await open({ scanDocuments: async function* () { yield rows } }, { pageBytes: 1000 })
    const sizes: number[] = []
    const ids: string[] = []
    for (let next = await pages.next(); !next.done; next = await pages.next()) {
      sizes.push(next.value.length)
      ids.push(...next.value.map(({ id }) => id))
    }
    assert.deepEqual(ids, rows.map(({ id }) => id))
    assert(sizes.length > 10 && Math.max(...sizes) <= 10)
  })

  it('do not block other calls', async () => {
    const { verbs } = endless(1000)
    const { a, b, pages } = await open(verbs)
    await pages.next()
    assert.equal(await a.remote(b).countDocuments({ descending: false }, context), 0)
    await pages.return?.()
  })
})

function withPlainBytes(message: RaftMessage): RaftMessage {
  if (message.type === 'append') {
    return { ...message, entries: message.entries.map(entry => ({ ...entry, payload: new Uint8Array(entry.payload) })) }
  }
  return message.type === 'snapshot' ? { ...message, state: new Uint8Array(message.state) } : message
}
