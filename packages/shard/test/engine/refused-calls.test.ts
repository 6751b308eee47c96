import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { ReplicaError } from '@sectional/core'
import { ManualClock, MemoryStorage } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { collect, context, edit, shardA, shardRuntime } from '../shard-world.ts'

async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(() => 'answered', (error: unknown) => error instanceof ReplicaError ? error.code : String(error))
}

describe('calls that a shard engine refuses', () => {
  let clock: ManualClock
  let host: ShardHost
  let engine: ShardEngine
  beforeEach(async () => {
    clock = new ManualClock()
    host = await ShardHost.open(shardRuntime(new MemoryStorage(), clock))
    engine = await host.create(shardA)
  })
  afterEach(() => host.close())

  it('have no time left, and then write nothing', async () => {
    for (const timeoutMs of [0, -1]) {
      const late = { timeoutMs }
      const write = { edits: [edit('a', null, {})], revsLimit: 10 }
      const scan = { descending: false, body: false, leaves: false }
      expect(await codeOf(engine.openDocument({ id: 'a', body: false, tree: false }, late))).to.equal('timeout')
      expect(await codeOf(engine.updateDocuments(write, late))).to.equal('timeout')
      expect(await codeOf(collect(engine.scanDocuments(scan, late)))).to.equal('timeout')
      expect(await codeOf(engine.waitForChange(engine.position()!, late))).to.equal('timeout')
    }
    await clock.advance(10)
    expect((await engine.upkeep.replicaInfo(context)).sequence).to.equal(0)
  })

  it('ask for digests in numbers of buckets, or for a bucket, that cannot be', async () => {
    for (const count of [0, -1, 1.5, Number.NaN, 65_537]) {
      expect(await codeOf(engine.upkeep.digestDocuments(count, context)), `${count} buckets`).to.equal('protocol')
    }
    for (const bucket of [-1, 0.5, 4]) {
      expect(await codeOf(collect(engine.upkeep.scanDigestBucket({ bucketCount: 4, bucket }, context))),
        `bucket ${bucket}`).to.equal('protocol')
    }
    expect(await engine.upkeep.digestDocuments(65_536, context)).to.have.length(65_536)
    expect(await collect(engine.upkeep.scanDigestBucket({ bucketCount: 4, bucket: 3 }, context))).to.deep.equal([])
  })
})

describe('calls of a shard engine', () => {
  it('leave no listeners on a signal that they share, and no timers', async () => {
    const clock = new ManualClock()
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(), clock))
    const engine = await host.create(shardA)
    const controller = new AbortController()
    const shared = { ...context, signal: controller.signal }
    const timers = clock.pendingTimers
    const waiting = engine.waitForChange(engine.position()!, shared)
    for (const id of ['a', 'b']) await engine.updateDocuments({ edits: [edit(id, null, {})], revsLimit: 10 }, shared)
    expect((await waiting).sequence).to.equal(1)
    await engine.countDocuments({ before: { id: 'b', inclusive: true }, descending: false }, shared)
    expect(await collect(engine.scanChanges({ since: 0, descending: false, body: true, locals: false }, shared)))
      .to.have.length(2)
    expect([getEventListeners(controller.signal, 'abort'), clock.pendingTimers]).to.deep.equal([[], timers])
    const left = codeOf(engine.waitForChange(engine.position()!, shared))
    controller.abort()
    expect(await left).to.equal('cancelled')
    expect([getEventListeners(controller.signal, 'abort'), clock.pendingTimers]).to.deep.equal([[], timers])
    await host.close()
  })
})
