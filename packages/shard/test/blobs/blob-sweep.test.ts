import { ManualClock, MemoryBlobStorage, MemoryLog, MemoryStorage } from '@sectional/runtime'
import type { BlobStore, IterateOptions, Range, Store, WriteBatch } from '@sectional/runtime'
import { expect } from 'chai'
import { BlobLeases, leaseMs } from '../../src/blobs/blob-leases.ts'
import { BlobSweep } from '../../src/blobs/blob-sweep.ts'
import { blobKeys, ShardKeys } from '../../src/records/key-layout.ts'
import { noMetrics } from '../shard-world.ts'

/** A fixture whose sweeps run until `finish` is called. */
class SlowSweeps {
  readonly clock = new ManualClock()
  begun = 0
  finish = (): void => {}
  sweep!: BlobSweep

  async open(): Promise<this> {
    const { clock } = this
    const blobs = await new MemoryBlobStorage().open('attachments')
    const list = this.#list.bind(this)
    const slow: BlobStore = Object.assign(Object.create(blobs) as BlobStore, { list })
    this.sweep = new BlobSweep({
      blobs: slow, store: await new MemoryStorage().open('documents'), clock, log: new MemoryLog(), metrics: noMetrics,
      leases: new BlobLeases(clock), complete: () => true,
    })
    return this
  }

  async* #list(): AsyncGenerator<string> {
    this.begun++
    await new Promise<void>(resolve => { this.finish = resolve })
  }
}

describe('sweeps of blobs', () => {
  let sweeps: SlowSweeps
  beforeEach(async () => { sweeps = await new SlowSweeps().open() })

  it('have one timer even when data is dropped during a sweep', async () => {
    const { sweep, clock } = sweeps
    sweep.start()
    await clock.advance(leaseMs)
    expect(sweeps.begun).to.equal(1)
    sweep.soon()
    sweeps.finish()
    await clock.advance(0)
    expect(clock.pendingTimers).to.equal(1)
    await clock.advance(60_000)
    expect(sweeps.begun).to.equal(2)
    sweeps.finish()
    await sweep.stop()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('are not delayed when data is dropped repeatedly', async () => {
    const { sweep, clock } = sweeps
    sweep.start()
    await clock.advance(leaseMs)
    sweeps.finish()
    for (let time = 0; time < 3; time++) {
      sweep.soon()
      await clock.advance(30_000)
    }
    expect(sweeps.begun).to.equal(2)
  })

  it('are repeated every hour, also when nothing is dropped', async () => {
    const { sweep, clock } = sweeps
    sweep.start()
    await clock.advance(leaseMs)
    for (const begun of [2, 3]) {
      sweeps.finish()
      await clock.advance(3_599_999)
      expect(sweeps.begun).to.equal(begun - 1)
      await clock.advance(1)
      expect(sweeps.begun).to.equal(begun)
    }
  })

  it('begin only after the leases of the last run of the node have ended, whatever is dropped', async () => {
    const { sweep, clock } = sweeps
    sweep.start()
    sweep.soon()
    await clock.advance(leaseMs - 1)
    expect(sweeps.begun).to.equal(0)
    await clock.advance(1)
    expect(sweeps.begun).to.equal(1)
  })

  it('keep the content that a failed batch names, when the batch is found once the store has recovered', async () => {
    const hashes = ['1', '2', '3', '4', '5', '6'].map(digit => digit.repeat(64))
    const [first, second, third, fourth, fifth, sixth] = hashes
    const left = new Set(hashes)
    const store = await new MemoryStorage().open('documents')
    const found: ((batch: WriteBatch) => void)[] = []
    const fail = (hash: string, sequence: number): void => {
      failing.failures++
      found.push(batch => {
        batch.put(blobKeys.reference(hash, { prefix: 7, sequence }), new Uint8Array(0))
        batch.put(new ShardKeys(7).body(sequence), new Uint8Array(1))
      })
    }
    const failing = {
      failures: 0,
      getSync: store.getSync.bind(store),
      iterate: (range: Range, options: IterateOptions) => {
        const iterator = store.iterate(range, options)
        if (range.gte === blobKeys.references(fifth!).gte) fail(fifth!, 5)
        return iterator
      },
      write: async (fill: (batch: WriteBatch) => void): Promise<void> => {
        for (const landed of found.splice(0)) await store.write(landed)
        await store.write(fill)
      },
    }
    const blobs = {
      async* list() { yield* hashes },
      async delete(hash: string) {
        left.delete(hash)
        if (hash === first) fail(third!, 3)
      },
    }
    const { clock } = sweeps
    const sweep = new BlobSweep({
      blobs: blobs as unknown as BlobStore, store: failing as unknown as Store, clock, log: new MemoryLog(),
      metrics: noMetrics, leases: new BlobLeases(clock), complete: () => true,
    })
    fail(second!, 2)
    expect(await sweep.run()).to.equal(3)
    expect([...left], `${first}, ${fourth} and ${sixth} have no name`).to.deep.equal([second, third, fifth])
  })
})
