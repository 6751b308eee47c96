import { expect } from 'chai'
import { GroupedReads } from '../../src/storage/grouped-reads.ts'

const texts = (values: readonly (Uint8Array | undefined)[]): (string | undefined)[] =>
  values.map(value => value && Buffer.from(value).toString())

describe('grouped reads', () => {
  let crossings: string[][]
  let damaged: string | undefined
  const reads = (): GroupedReads => new GroupedReads(async keys => {
    crossings.push(keys)
    await null
    if (damaged !== undefined && keys.includes(damaged)) throw new Error(`cannot read ${damaged}`)
    return keys.map(each => each.startsWith('no') ? undefined : Buffer.from(`value of ${each}`))
  })

  beforeEach(() => {
    crossings = []
    damaged = undefined
  })

  it('of one turn cross to the thread pool together, and each has its own values in its order', async () => {
    const grouped = reads()
    const [first, second, none] = await Promise.all([
      grouped.getMany(['b', 'a']), grouped.getMany(['none', 'c']), grouped.getMany([]),
    ])
    expect(crossings).to.deep.equal([['b', 'a', 'none', 'c']])
    expect(texts(first)).to.deep.equal(['value of b', 'value of a'])
    expect(texts(second)).to.deep.equal([undefined, 'value of c'])
    expect(none).to.deep.equal([])
    await grouped.getMany(['d'])
    expect(crossings.length).to.equal(2)
  })

  it('cross without waiting when there are many', async () => {
    const grouped = reads()
    const many = Array.from({ length: 300 }, (_, index) => `k${index}`)
    const first = grouped.getMany(many)
    expect(crossings.map(({ length }) => length)).to.deep.equal([300])
    const second = grouped.getMany(['a'])
    expect((await first).length).to.equal(300)
    expect(texts(await second)).to.deep.equal(['value of a'])
    expect(crossings.length).to.equal(2)
  })

  it('fail only for the caller whose key cannot be read', async () => {
    const grouped = reads()
    damaged = 'b'
    const outcomes = await Promise.allSettled([
      grouped.getMany(['a']), grouped.getMany(['b', 'c']), grouped.getMany(['d']),
    ])
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
    expect((outcomes[1] as PromiseRejectedResult).reason.message).to.equal('cannot read b')
  })
})
