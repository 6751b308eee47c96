import { ManualClock, MemoryBlobStorage, MemoryLog, MemoryStorage } from '@sectional/runtime'
import type { BlobStore } from '@sectional/runtime'
import { expect } from 'chai'
import { BlobLeases, leaseMs } from '../../src/blobs/blob-leases.ts'
import { BlobSweep } from '../../src/blobs/blob-sweep.ts'
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

  it('begin only after the leases of the last run of the node have ended, whatever is dropped', async () => {
    const { sweep, clock } = sweeps
    sweep.start()
    sweep.soon()
    await clock.advance(leaseMs - 1)
    expect(sweeps.begun).to.equal(0)
    await clock.advance(1)
    expect(sweeps.begun).to.equal(1)
  })
})
