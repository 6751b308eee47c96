import { expect } from 'chai'
import { ManualClock, MemoryStorage } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import { context, revision, shardA, shardRuntime } from '../shard-world.ts'

/** More turns than a replica needs to report its state. */
const turnsMax = 20

describe('a replica that reports its state while it receives changes of another one', () => {
  it('names no checkpoint without the changes that came before it', async () => {
    const host = await ShardHost.open(shardRuntime(new MemoryStorage(), new ManualClock()))
    const engine = await host.create(shardA)
    let within = 0
    for (let turns = 0; turns <= turnsMax; turns++) {
      const [history, id] = [`h${turns}`, `d${turns}`]
      let stored = false
      const storing = engine.storeRevisions({
        revisions: [revision(id, ['a'], {})], revsLimit: 10, checkpoint: { history, sequence: 1 },
      }, context).then(() => { stored = true })
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const isUnderWay = !stored
      const { seen, sequence } = await engine.upkeep.replicaInfo(context)
      await storing
      // Each change so far has a sequence of its own and the checkpoint of its own history.
      expect(sequence, `after ${turns} turns`).to.be.at.least(Object.keys(seen).length)
      if (isUnderWay && seen[history] !== undefined) within++
    }
    expect(within, 'changes that a report included which had begun before them').to.be.above(0)
    await host.close()
  })
})
