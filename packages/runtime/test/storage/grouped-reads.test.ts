import { expect } from 'chai'
import { GroupedReads } from '../../src/storage/grouped-reads.ts'

const key = (text: string): Uint8Array => Buffer.from(text)
const texts = (values: readonly (Uint8Array | undefined)[]): (string | undefined)[] => values.map(value => value && Buffer.from(value).toString())

describe('grouped reads', () => {
  let crossings: string[][]
  let damaged: string | undefined
  const reads = (): GroupedReads => new GroupedReads(async keys => {
    const asked = keys.map(each => Buffer.from(each).toString())
    crossings.push(asked)
    await null
    if (damaged !== undefined && asked.includes(damaged)) throw new Error(`cannot read ${damaged}`)
    return asked.map(each => each.startsWith('no') ? undefined : key(`value of ${each}`))
  })

  beforeEach(() => {
    crossings = []
    damaged = undefined
  })

  it('cross together in one turn, and each has its own values in its order', async () => {
    const grouped = reads()
    const [first, second, none] = await Promise.all([grouped.getMany([key('b'), key('a')]), grouped.getMany([key('none'), key('c')]), grouped.getMany([])])
    expect(crossings).to.deep.equal([['b', 'a', 'none', 'c']])
    expect(texts(first)).to.deep.equal(['value of b', 'value of a'])
    expect(texts(second)).to.deep.equal([undefined, 'value of c'])
    expect(none).to.deep.equal([])
    await grouped.getMany([key('d')])
    expect(crossings.length).to.equal(2)
  })

  it('cross at once when there are many', async () => {
    const grouped = reads()
    const many = Array.from({ length: 300 }, (_, index) => key(`k${index}`))
    const first = grouped.getMany(many)
    expect(crossings.map(({ length }) => length)).to.deep.equal([300])
    const second = grouped.getMany([key('a')])
    expect((await first).length).to.equal(300)
    expect(texts(await second)).to.deep.equal(['value of a'])
    expect(crossings.length).to.equal(2)
  })

  it('fail for the one whose key cannot be read, not for the others', async () => {
    const grouped = reads()
    damaged = 'b'
    const outcomes = await Promise.allSettled([grouped.getMany([key('a')]), grouped.getMany([key('b'), key('c')]), grouped.getMany([key('d')])])
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
    expect((outcomes[1] as PromiseRejectedResult).reason.message).to.equal('cannot read b')
  })
})
