/** Tests the links over real WebSockets on loopback. */
import assert from 'node:assert/strict'
import { MemoryIndexReplica } from '@sectional/core/index-replica-memory'
import { indexReplicaSuite } from '@sectional/core/index-replica-suite'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { shardReplicaSuite } from '@sectional/core/shard-replica-suite'
import { RealClock, WebSocketNetwork } from '@sectional/runtime'
import { context, failure, TestNode } from './test-node.ts'
import type { TestNodeOptions } from './test-node.ts'

const clock = new RealClock()

async function listening(name: string, options: Partial<TestNodeOptions> = {}): Promise<TestNode> {
  const node = new TestNode({
    name: '127.0.0.1', network: new WebSocketNetwork(), clock, ...options, seed: name.charCodeAt(0),
  })
  return node.start()
}

function addressOf(node: TestNode): string {
  const { listening: address } = node.peers
  assert(address)
  return `${address.host}:${address.port}`
}

/** Resolves when a link of the node is open. */
function linked(node: TestNode): Promise<void> {
  return new Promise(resolve => {
    if (node.peers.connected().length > 0) return resolve()
    const off = node.peers.onChange((_peer, up) => { if (up) { off(); resolve() } })
  })
}

async function pair(options: Partial<TestNodeOptions> = {}): Promise<readonly [TestNode, TestNode]> {
  const b = await listening('b', options)
  b.peers.setIdentity({ ...b.identity, node: 'b' })
  const a = await listening('a', options)
  a.peers.setPeers([addressOf(b)])
  await Promise.all([linked(a), linked(b)])
  return [a, b]
}

shardReplicaSuite('remote, over WebSockets on loopback', async () => {
  const [a, b] = await pair()
  b.replica = new MemoryShardReplica({ history: `h${Math.random()}` })
  const replica = a.peers.replica('b', { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } })
  return { replica, close: async () => { await Promise.all([a.peers.stop(), b.peers.stop()]) } }
})

indexReplicaSuite('remote, over WebSockets on loopback', async (replica, indexer, documents) => {
  const [a, b] = await pair()
  const local = new MemoryIndexReplica({ replica, documents, indexer, clock })
  b.indexes = local
  const indexes = a.peers.indexes('b', { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } })
  return { indexes, close: async () => { local.close(); await Promise.all([a.peers.stop(), b.peers.stop()]) } }
})

describe('links over WebSockets on loopback', () => {
  it('transmit documents of several megabytes', async () => {
    const [a, b] = await pair()
    const replica = a.peers.replica('b', { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } })
    const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(8_000_000) }))
    await replica.storeRevisions(
      { revisions: [{ id: 'big', path: { start: 1, ids: ['ab'] }, deleted: false, body }], revsLimit: 10 }, context,
    )
    const opened = await replica.openDocument({ id: 'big', body: true, tree: false }, context)
    assert(opened?.body && Buffer.compare(opened.body, body) === 0)
    await Promise.all([a.peers.stop(), b.peers.stop()])
  })

  it('fail calls as unreachable when the peer has stopped, and open again when it is back', async () => {
    const [a, b] = await pair({ limits: { backoffMaxMs: 100 } })
    const address = addressOf(b)
    const hanging = failure(a.peers.replica('b', { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } })
      .openDocument({ id: 'x', body: true, tree: false }, context))
    b.replica = Object.assign(new MemoryShardReplica({ history: 'h' }), { openDocument: () => new Promise(() => {}) })
    const down = new Promise<void>(resolve => { a.peers.onChange((_peer, up) => { if (!up) resolve() }) })
    await b.peers.stop()
    await down
    assert.equal((await hanging).code, 'unreachable')
    const again = await listening('b', { port: Number(address.split(':')[1]) })
    again.peers.setIdentity({ ...again.identity, node: 'b2' })
    await linked(a)
    assert.deepEqual(a.connected(), ['b2'])
    await Promise.all([a.peers.stop(), again.peers.stop()])
  })

  it('name the address that cannot be bound', async () => {
    const b = await listening('b')
    await assert.rejects(listening('c', { port: b.peers.listening?.port ?? 0 }), new RegExp(addressOf(b)))
    await b.peers.stop()
  })
})
