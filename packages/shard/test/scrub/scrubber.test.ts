import { expect } from 'chai'
import type { ShardId } from '@sectional/core'
import { ManualClock, MemoryLog, sleep } from '@sectional/runtime'
import type { ShardRecords } from '../../src/reading/shard-records.ts'
import { DamagedRecordError } from '../../src/records/damaged-record.ts'
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

  it('goes on with other shards and with attachments when a shard is damaged', async () => {
    const damaged = { keys: { prefix: 1 }, get store() { throw new DamagedRecordError('it is damaged') } }
    const reported: ShardId[] = []
    let readsOfBlobs = 0
    const scrubber = new Scrubber({
      clock: new ManualClock(), log: new MemoryLog(), options: { pauseMs, restPart: 0 },
      shards: () => [shardA, shardB], records: () => damaged as unknown as ShardRecords,
      onDamage: shard => { reported.push(shard) }, checkFiles: async () => {},
      readBlobs: async () => { readsOfBlobs++ },
    })
    await scrubber.run()
    expect([reported, readsOfBlobs]).to.deep.equal([[shardA, shardB], 1])
  })

  it('rests after each piece of work in proportion to the time that this piece took', async () => {
    const clock = new ManualClock()
    const rests: number[] = []
    const scrubber = new Scrubber({
      clock, log: new MemoryLog(), options: { pauseMs, restPart: 0.75 },
      shards: () => [], records: () => undefined, onDamage: () => {}, checkFiles: async () => {},
      readBlobs: async rest => {
        for (const workMs of [10, 20, 10]) {
          await sleep(clock, workMs)
          const begunMs = clock.monotonic()
          await rest()
          rests.push(clock.monotonic() - begunMs)
        }
      },
    })
    const run = scrubber.run()
    for (let steps = 0; steps < 16; steps++) await clock.advance(10)
    expect(rests).to.deep.equal([30, 60, 30])
    await run
  })

  it('reports no damage of a shard that was dropped or created anew meanwhile', async () => {
    const clock = new ManualClock()
    const damaged = (prefix: number) => (
      { keys: { prefix }, get store() { throw new DamagedRecordError('it is gone') } }) as unknown as ShardRecords
    const later: readonly (readonly [ShardRecords | undefined, number])[] = [
      [damaged(1), 1], [damaged(2), 0], [undefined, 0],
    ]
    for (const [then, reports] of later) {
      const found = [damaged(1), then]
      let reported = 0
      const scrubber = new Scrubber({
        clock, log: new MemoryLog(), options: { pauseMs, restPart: 0 },
        shards: () => [shardA], records: () => found.shift(), onDamage: () => { reported++ },
        checkFiles: async () => {}, readBlobs: async () => {},
      })
      await scrubber.run()
      expect(reported).to.equal(reports)
    }
  })
})
