import { expect } from 'chai'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import type { ShardRecords } from '../../src/reading/shard-records.ts'
import { Scrubber } from '../../src/scrub/scrubber.ts'
import { shardA, shardB } from '../shard-world.ts'

const pauseMs = 1000

describe('a scrub', () => {
  it('logs every failure, does the rest, and is repeated', async () => {
    const clock = new ManualClock()
    const log = new MemoryLog()
    const fail = (what: string): never => { throw new Error(`${what} cannot be read`) }
    const unreadable = { get store() { return fail('a shard') } } as unknown as ShardRecords
    const scrubber = new Scrubber({
      clock, log, options: { pauseMs, restPart: 0 },
      shards: () => [shardA, shardB],
      records: () => unreadable,
      onDamage: () => fail('nothing'),
      checkFiles: async () => fail('a file'),
      readBlobs: async () => fail('an attachment'),
    })
    scrubber.start()
    await clock.advance(0)
    expect(log.messages('warn')).to.have.length(1)
    for (const runs of [1, 2]) {
      await clock.advance(pauseMs)
      expect(log.messages('warn')).to.have.length(1 + 4 * runs)
    }
    await scrubber.stop()
    expect(clock.pendingTimers).to.equal(0)
  })
})
