import { expect } from 'chai'
import { ApiError, type FoundDocument } from '@sectional/core'
import { ManualClock, Turns } from '@sectional/runtime'
import { sortBytesMax, sortedMatches, type SortedQuery } from '../../src/find/match-sort.ts'
import { SortMemory } from '../../src/find/sort-memory.ts'
import { collect } from '../views/index-world.ts'

function found(number: number, bytes = 10): FoundDocument {
  const body = Buffer.from(JSON.stringify({ n: number, text: 'x'.repeat(bytes) }))
  const place = { range: 0, key: '', id: `d${number}`, number: 0 }
  return { kind: 'found', ...place, value: Buffer.alloc(0), revision: '1-a', body }
}

async function* pagesOf(documents: Iterable<FoundDocument>): AsyncGenerator<readonly FoundDocument[]> {
  for (const document of documents) yield [document]
}

function* large(count: number): Generator<FoundDocument> {
  for (let number = 0; number < count; number++) yield found(number, 1024 * 1024)
}

const query: SortedQuery = { sort: { fields: [['n']], rowsMax: 1_000 }, descending: true, skip: 0, limit: 3 }

describe('the memory of a sort', () => {
  const sort = (documents: Iterable<FoundDocument>, memory: SortMemory, asked: Partial<SortedQuery> = {}) =>
    collect(sortedMatches(pagesOf(documents), { ...query, ...asked }, memory, new Turns(new ManualClock())))

  async function failureOf(work: Promise<unknown>): Promise<ApiError> {
    const failure = await work.then(() => undefined, (error: unknown) => error)
    expect(failure).to.be.instanceOf(ApiError)
    return failure as ApiError
  }

  it('has no more than the first matches, and is given back', async () => {
    const memory = new SortMemory(2_500)
    const ids = (await sort(Array.from({ length: 100 }, (_, n) => found(n)), memory)).map(({ id }) => id)
    expect(ids).to.deep.equal(['d99', 'd98', 'd97'])
    expect(memory.bytes).to.equal(0)
  })

  it('is refused beyond what one sort may have', async () => {
    const memory = new SortMemory()
    const { error, reason } = await failureOf(sort(large(70), memory, { limit: 70 }))
    expect([error, reason]).to.deep.equal(['too_large', reason])
    expect(reason).to.include(String(sortBytesMax)).and.to.include('create an index')
    expect(memory.bytes).to.equal(0)
  })

  it('is refused beyond what all sorts may have together', async () => {
    const memory = new SortMemory(3_000)
    memory.hold(2_500)
    const { error, headers } = await failureOf(sort([found(1), found(2)], memory))
    expect([error, headers]).to.deep.equal(['service unavailable', { 'Retry-After': '1' }])
    expect(memory.bytes).to.equal(2_500)
  })
})
