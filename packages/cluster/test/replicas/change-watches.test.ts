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
})
