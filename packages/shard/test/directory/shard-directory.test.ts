import { keyWord, MemoryStorage, SeededRandom } from '@sectional/runtime'
import { expect } from 'chai'
import { ShardDirectory } from '../../src/directory/shard-directory.ts'
import { ShardKeys } from '../../src/records/key-layout.ts'
import { shardA, shardB } from '../shard-world.ts'

describe('the directory of shards', () => {
  it('tells which shards have keys in a range, wherever in the keys of a shard it begins and ends', async () => {
    const directory = await ShardDirectory.open(await new MemoryStorage().open('documents'), new SeededRandom(1))
    const first = await directory.add(shardA, false)
    const second = await directory.add(shardB, false)
    const [body, nextBody] = [first, second].map(({ prefix }) => new ShardKeys(prefix).body(7)) as [string, string]
    expect(directory.shardsIn({ gte: body, lt: keyWord(second.prefix) })).to.deep.equal([shardA])
    expect(directory.shardsIn({ gte: body, lt: nextBody })).to.deep.equal([shardA, shardB])
    expect(directory.shardsIn({ gte: nextBody, lt: keyWord(second.prefix + 1) })).to.deep.equal([shardB])
    expect(directory.shardsIn({ gte: keyWord(second.prefix + 1), lt: keyWord(second.prefix + 2) })).to.deep.equal([])
    expect(directory.shardsIn({ gte: keyWord(0), lt: keyWord(0) })).to.deep.equal([shardA, shardB])
  })
})
