import { expect } from 'chai'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock } from '@sectional/runtime'
import type { ChangeRow, ShardId } from '@sectional/core'
import { defaultCoordinatorOptions } from '../../src/contracts/coordinator-options.ts'
import { ChangeWatches } from '../../src/replicas/change-watches.ts'

const shard: ShardId = { incarnation: '1', range: { begin: 0, end: 0xffffffff } }

describe('the rows that feeds read together', () => {
  it('are read once for the same change, and anew for a later one, although a read is under way', async () => {
    const replica = new MemoryShardReplica({ history: 'h' })
    const begun: PromiseWithResolvers<readonly ChangeRow[]>[] = []
    replica.scanChanges = async function* () {
      const page = Promise.withResolvers<readonly ChangeRow[]>()
      begun.push(page)
      yield await page.promise
    }
    const peer = { node: 'a', local: true, active: true, replica }
    const watches = new ChangeWatches(new ManualClock(), defaultCoordinatorOptions)
    const row = (sequence: number): ChangeRow => ({ id: `d${sequence}`, sequence, leaves: [] })
    const tail = (target: number) => watches.tail(peer, shard, { history: 'h', since: 4, target, body: false })
    const tails = [tail(5), tail(5), tail(6)]
    await Promise.resolve()
    expect(begun).to.have.length(2)
    begun[0]!.resolve([row(5)])
    begun[1]!.resolve([row(5), row(6)])
    expect((await Promise.all(tails)).map(({ rows }) => rows.length)).to.deep.equal([1, 1, 2])
    watches.stop()
  })

  it('are not complete when their limit of rows or bytes was reached', async () => {
    const replica = new MemoryShardReplica({ history: 'h' })
    let pages: readonly (readonly ChangeRow[])[] = []
    replica.scanChanges = async function* () { yield* pages }
    const peer = { node: 'a', local: true, active: true, replica }
    const options = { ...defaultCoordinatorOptions, tailRows: 3, tailBytes: 10 }
    const watches = new ChangeWatches(new ManualClock(), options)
    const tail = async (...lengths: readonly (readonly number[])[]): Promise<unknown> => {
      let sequence = 0
      pages = lengths.map(page =>
        page.map(length => ({ id: 'x', sequence: ++sequence, leaves: [], body: new Uint8Array(length) })))
      const { rows, complete } = await watches.tail(
        peer, shard, { history: 'h', since: 0, target: 9, body: true })
      return [rows.length, complete]
    }
    expect(await tail([1], [8])).to.deep.equal([2, true])
    expect(await tail([1, 1], [1])).to.deep.equal([3, false])
    expect(await tail([10], [1])).to.deep.equal([1, false])
    watches.stop()
  })
})

describe('a wait for changes of a replica', () => {
  it('fails when the replica has begun a new history, however few changes that has', async () => {
    const replica = new MemoryShardReplica({ history: 'new' })
    const peer = { node: 'a', local: true, active: true, replica }
    const clock = new ManualClock()
    const watches = new ChangeWatches(clock, defaultCoordinatorOptions)
    const outcomes: (number | string)[] = []
    watches.subscribe(peer, shard, { history: 'old', sequence: 10 }, {
      changed: sequence => { outcomes.push(sequence) },
      failed: ({ code }) => { outcomes.push(code) },
    })
    await clock.advance(1000)
    expect(outcomes).to.deep.equal(['not_hosted'])
    watches.stop()
  })

  it('ends at once for a subscriber that is behind what is known, and goes on for the others', async () => {
    const replica = new MemoryShardReplica({ history: 'h' })
    const peer = { node: 'a', local: true, active: true, replica }
    const watches = new ChangeWatches(new ManualClock(), defaultCoordinatorOptions)
    const outcomes: string[] = []
    const wait = (name: string, sequence: number): void => {
      watches.subscribe(peer, shard, { history: 'h', sequence }, {
        changed: reached => { outcomes.push(`${name} ${reached}`) }, failed: ({ code }) => { outcomes.push(code) },
      })
    }
    wait('first', 5)
    wait('behind', 3)
    wait('equal', 5)
    expect(outcomes, 'not before the call returns').to.deep.equal([])
    await Promise.resolve()
    expect(outcomes).to.deep.equal(['behind 5'])
    watches.stop()
  })

  it('fails after the stop, also one that begins later', async () => {
    const peer = { node: 'a', local: true, active: true, replica: new MemoryShardReplica({ history: 'h' }) }
    const clock = new ManualClock()
    const watches = new ChangeWatches(clock, defaultCoordinatorOptions)
    const failures: string[] = []
    const wait = (name: string): void => {
      watches.subscribe(peer, shard, { history: 'h', sequence: 0 }, {
        changed: () => {}, failed: () => { failures.push(name) },
      })
    }
    wait('before')
    await clock.advance(10)
    watches.stop()
    await clock.advance(10)
    expect(failures).to.deep.equal(['before'])
    wait('after')
    await clock.advance(10)
    expect(failures).to.deep.equal(['before', 'after'])
    expect(clock.pendingTimers).to.equal(0)
  })
})
