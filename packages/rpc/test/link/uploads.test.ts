import assert from 'node:assert/strict'
import { ReplicaError } from '@sectional/core'
import type { BlobReplica, CallContext, ShardReplica, WrittenBlob } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { sleep } from '@sectional/runtime'
import { context, failure, TestWorld } from '../test-node.ts'

const hash = 'cd'.repeat(32)

describe('uploads over a link', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  async function serving(writeBlob: BlobReplica['writeBlob'], limits = {}): Promise<ShardReplica> {
    const [a, b] = await world.pair({ limits })
    const replica = new MemoryShardReplica({ history: 'h1' })
    Object.assign(replica.blobs, { writeBlob })
    b.replica = replica
    return a.remote(b)
  }

  /** Returns chunks that are produced on demand, and a function that counts the produced ones. */
  function counted(
    chunkBytes: number, count: number,
  ): { readonly chunks: AsyncIterable<Uint8Array>; readonly given: () => number } {
    let given = 0
    async function* produce(): AsyncGenerator<Uint8Array> {
      for (; given < count;) {
        given++
        yield Buffer.alloc(chunkBytes, 'x')
      }
    }
    return { chunks: produce(), given: () => given }
  }

  it('send no more than the window ahead of a replica that takes nothing', async () => {
    let take = (): void => {}
    const remote = await serving(async chunks => {
      await new Promise<void>(resolve => { take = resolve })
      return drain(chunks)
    }, { uploadBytes: 10_000 })
    const { chunks, given } = counted(1000, 100)
    const written = remote.blobs.writeBlob(chunks, context)
    for (let turn = 0; turn < 20; turn++) await world.settle()
    assert(given() <= 12, `${given()} chunks were taken from the source`)
    take()
    for (let turn = 0; turn < 200; turn++) await world.settle()
    assert.equal((await written).length, 100_000)
  })

  it('fail at once when the replica fails, and stop reading their source', async () => {
    let left = false
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Buffer.alloc(1000)
      } finally {
        left = true
      }
    }
    const remote = await serving(async () => { throw new ReplicaError('storage', 'the disk is full') })
    const call = failure(remote.blobs.writeBlob(endless(), context))
    for (let turn = 0; turn < 20; turn++) await world.settle()
    assert.equal((await call).code, 'storage')
    assert.equal(left, true)
  })

  it('cancel the call at the far end when their source throws, and reject with its error', async () => {
    let seen: unknown
    const remote = await serving(async chunks => {
      try {
        return await drain(chunks)
      } catch (error) {
        seen = error
        throw error
      }
    })
    const broken = new Error('the client went away')
    async function* source(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('begun')
      throw broken
    }
    await assert.rejects(remote.blobs.writeBlob(source(), context), error => error === broken)
    for (let turn = 0; turn < 5; turn++) await world.settle()
    assert.equal((seen as ReplicaError).code, 'cancelled')
  })

  it('time out when the far end takes nothing, and abort it', async () => {
    let served: CallContext | undefined
    const remote = await serving((_chunks, serving) => {
      served = serving
      return new Promise<WrittenBlob>((_, reject) => {
        serving.signal?.addEventListener('abort', () => reject(serving.signal?.reason))
      })
    }, { uploadBytes: 5000 })
    const call = failure(remote.blobs.writeBlob(counted(1000, 100).chunks, { timeoutMs: 300 }))
    for (let turn = 0; turn < 5; turn++) await world.settle()
    await world.clock.advance(300)
    assert.equal((await call).code, 'timeout')
    await world.settle()
    assert.equal(served?.signal?.aborted, true)
  })

  it('take longer than their timeout while the far end goes on taking chunks', async () => {
    const remote = await serving(async chunks => {
      let length = 0
      for await (const chunk of chunks) {
        await sleep(world.clock, 80)
        length += chunk.length
      }
      return { hash, length }
    }, { uploadBytes: 2000 })
    const written = remote.blobs.writeBlob(counted(1000, 10).chunks, { timeoutMs: 300 })
    for (let turn = 0; turn < 10; turn++) {
      for (let inner = 0; inner < 5; inner++) await world.settle()
      await world.clock.advance(80)
    }
    for (let turn = 0; turn < 5; turn++) await world.settle()
    assert.equal((await written).length, 10_000)
  })

  it('time out when the far end takes everything and does not answer', async () => {
    const remote = await serving(async (chunks, serving) => {
      await drain(chunks)
      return new Promise<WrittenBlob>((_, reject) => {
        serving.signal?.addEventListener('abort', () => reject(serving.signal?.reason))
      })
    })
    const call = failure(remote.blobs.writeBlob(counted(1000, 2).chunks, { timeoutMs: 300 }))
    for (let turn = 0; turn < 5; turn++) await world.settle()
    await world.clock.advance(300)
    assert.equal((await call).code, 'timeout')
  })

  it('end at once when the caller cancels, and abort the far end', async () => {
    let served: CallContext | undefined
    const remote = await serving(async (chunks, serving) => {
      served = serving
      return drain(chunks)
    }, { uploadBytes: 5000 })
    async function* begun(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('begun')
      await new Promise(() => {})
    }
    const controller = new AbortController()
    const call = failure(remote.blobs.writeBlob(begun(), { ...context, signal: controller.signal }))
    await world.settle()
    controller.abort()
    await world.settle()
    assert.equal((await call).code, 'cancelled')
    assert.equal(served?.signal?.aborted, true)
  })

  it('end at the far end when the sender sends nothing for a long time', async () => {
    let seen: unknown
    const remote = await serving(async chunks => {
      try {
        return await drain(chunks)
      } catch (error) {
        seen = error
        throw error
      }
    }, { streamStallMs: 2000 })
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('begun')
      await new Promise(() => {})
    }
    const call = failure(remote.blobs.writeBlob(silent(), context))
    for (let turn = 0; turn < 5; turn++) await world.settle()
    for (let passed = 0; passed < 2000; passed += 500) await world.clock.advance(500)
    await world.settle()
    assert.equal((seen as ReplicaError).code, 'timeout')
    assert.equal((await call).code, 'timeout')
  })

  it('fail as unreachable when the link breaks', async () => {
    const remote = await serving(chunks => drain(chunks))
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('begun')
      await new Promise(() => {})
    }
    const call = failure(remote.blobs.writeBlob(silent(), context))
    await world.settle()
    await world.during(world.nodes[1]!.peers.stop())
    await world.settle()
    assert.equal((await call).code, 'unreachable')
  })
})

async function drain(chunks: AsyncIterable<Uint8Array>): Promise<WrittenBlob> {
  let length = 0
  for await (const chunk of chunks) length += chunk.length
  return { hash, length }
}
