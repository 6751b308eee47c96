import { expect } from 'chai'
import { type ReducedGroup, type ReduceIndexRequest, ReplicaError } from '@sectional/core'
import { ManualClock, sleep } from '@sectional/runtime'
import { readAheadMs, ReductionCache } from '../../src/indexes/reduction-cache.ts'

const request: ReduceIndexRequest = { index: 'x', through: 0, ranges: [{}], descending: false, groupLevel: 1 }

const pageBytes = 64 * 1024

function groups(count: number): readonly ReducedGroup[] {
  return Array.from({ length: count }, (_, at) =>
    ({ kind: 'group', range: 0, group: String(at), value: Buffer.from(String(at)) }))
}

async function collect(pages: AsyncIterable<readonly ReducedGroup[]>): Promise<readonly ReducedGroup[]> {
  const all: ReducedGroup[] = []
  for await (const page of pages) all.push(...page)
  return all
}

async function* inPages(all: readonly ReducedGroup[], count: number): AsyncGenerator<readonly ReducedGroup[]> {
  for (let at = 0; at < all.length; at += count) yield all.slice(at, at + count)
}

describe('kept reductions', () => {
  let clock: ManualClock
  beforeEach(() => { clock = new ManualClock() })

  it('belong to one version and one request', async () => {
    const cache = new ReductionCache(clock)
    await collect(cache.open('1', request, () => inPages(groups(3), 2), pageBytes))
    expect(cache.get('1', request)).to.deep.equal(groups(3))
    expect(cache.get('2', request)).to.equal(undefined)
    const others: readonly Partial<ReduceIndexRequest>[] = [
      { groupLevel: 2 }, { groupLevel: 'exact' }, { descending: true }, { limit: 1 }, { skip: 1 },
      { ranges: [{ lower: { key: 'a', inclusive: true } }] }, { after: { range: 0, group: 'a' } },
    ]
    for (const other of others) expect(cache.get('1', { ...request, ...other })).to.equal(undefined)
  })

  it('are read once for calls that come together', async () => {
    const cache = new ReductionCache(clock)
    let reads = 0
    const gate = Promise.withResolvers<void>()
    const read = async function* () {
      reads++
      await gate.promise
      yield groups(3)
    }
    const results = [1, 2, 3].map(() => collect(cache.open('1', request, read, pageBytes)))
    gate.resolve()
    expect(await Promise.all(results)).to.deep.equal([groups(3), groups(3), groups(3)])
    expect(reads).to.equal(1)
  })

  it('are read again by the next call when a read fails, or its reader leaves', async () => {
    const cache = new ReductionCache(clock)
    const gate = Promise.withResolvers<void>()
    const failing = collect(cache.open('1', request, async function* () {
      await gate.promise
      throw new Error('failed')
    }, pageBytes))
    const next = collect(cache.open('1', request, () => inPages(groups(2), 2), pageBytes))
    gate.resolve()
    expect(await failing.catch((error: unknown) => String(error))).to.equal('Error: failed')
    expect(await next).to.deep.equal(groups(2))
    const long = cache.open('2', request, () => inPages(groups(3000), 32), pageBytes)
    await long.next()
    await long.return(undefined)
    expect(cache.get('2', request)).to.equal(undefined)
    expect(await collect(cache.open('2', request, () => inPages(groups(2), 2), pageBytes))).to.deep.equal(groups(2))
  })

  it('are kept at their end when reading them takes long, but the first groups come after a second', async () => {
    const cache = new ReductionCache(clock)
    const read = async function* () {
      for await (const page of inPages(groups(100), 10)) {
        await clock.advance(readAheadMs / 4)
        yield page
      }
    }
    const opened = cache.open('1', request, read, pageBytes)
    const first = await opened.next()
    expect(first.value).to.deep.equal(groups(40))
    expect(clock.monotonic()).to.equal(readAheadMs)
    const others = collect(cache.open('1', request, () => inPages(groups(100), 100), pageBytes))
    expect(await others).to.deep.equal(groups(100))
    expect([...groups(40), ...await collect(opened)]).to.deep.equal(groups(100))
    expect(cache.get('1', request)).to.deep.equal(groups(100))
  })

  it('are not kept when they are long, and do not wait for a reader that is slow', async () => {
    const cache = new ReductionCache(clock)
    const slow = cache.open('1', request, () => inPages(groups(3000), 32), pageBytes)
    const first = await slow.next()
    const second = cache.open('1', request, () => inPages(groups(3000), 32), pageBytes)
    expect(await collect(second)).to.deep.equal(groups(3000))
    expect([...first.value as readonly ReducedGroup[], ...await collect(slow)]).to.deep.equal(groups(3000))
    expect(cache.get('1', request)).to.equal(undefined)
  })

  it('are read at once by each call that waits for a result which turns out to be too large', async () => {
    const cache = new ReductionCache(clock)
    const gate = Promise.withResolvers<void>()
    let reads = 0
    const read = async function* () {
      reads++
      await gate.promise
      yield* inPages(groups(3000), 32)
    }
    const opened = [1, 2, 3].map(() => cache.open('1', request, read, pageBytes))
    const first = opened.map(each => each.next())
    gate.resolve()
    await Promise.all(first)
    expect(reads).to.equal(3)
    for (const each of opened) await each.return(undefined)
  })

  it('are read by one call after the other when reading them takes long', async () => {
    const cache = new ReductionCache(clock)
    let [reads, running, most] = [0, 0, 0]
    const read = async function* () {
      reads++
      most = Math.max(most, ++running)
      await sleep(clock, readAheadMs * 1.5)
      running--
      yield groups(1)
    }
    const results = Array.from({ length: 20 }, () => collect(cache.open('1', request, read, pageBytes)))
    for (let n = 0; n < 10; n++) await clock.advance(readAheadMs)
    expect(await Promise.all(results)).to.deep.equal(results.map(() => groups(1)))
    expect(most).to.equal(1)
    expect(reads).to.be.at.most(2)
  })

  it('are read page by page when they have many bytes', async () => {
    const cache = new ReductionCache(clock)
    const large = groups(100).map(group => ({ ...group, value: Buffer.alloc(1000) }))
    let ahead = 0
    const read = async function* () {
      for await (const page of inPages(large, 1)) {
        ahead++
        yield page
      }
    }
    const opened = cache.open('1', request, read, 10_000)
    expect((await opened.next()).value).to.have.length(10)
    expect(ahead).to.equal(10)
    expect(await collect(opened)).to.have.length(90)
    expect(cache.get('1', request)).to.equal(undefined)
  })

  it('are not kept when a group describes a failure', async () => {
    const cache = new ReductionCache(clock)
    const isFailure = ({ group }: ReducedGroup): boolean => group === '1'
    const opened = cache.open('1', request, () => inPages(groups(3), 2), pageBytes, isFailure)
    expect(await collect(opened)).to.deep.equal(groups(3))
    expect(cache.get('1', request)).to.equal(undefined)
  })

  it('are read once for calls that come together, also when a group describes a failure', async () => {
    const cache = new ReductionCache(clock)
    let reads = 0
    const read = async function* () {
      reads++
      await Promise.resolve()
      yield groups(3)
    }
    const results = [1, 2, 3].map(() => collect(cache.open('1', request, read, pageBytes, () => true)))
    expect(await Promise.all(results)).to.deep.equal([groups(3), groups(3), groups(3)])
    expect(reads).to.equal(1)
    await collect(cache.open('1', request, read, pageBytes, () => true))
    expect(reads).to.equal(2)
  })

  it('fail once for calls that come together when a function exceeds its limits', async () => {
    const cache = new ReductionCache(clock)
    let reads = 0
    const read = async function* (): AsyncGenerator<readonly ReducedGroup[]> {
      reads++
      await Promise.resolve()
      throw new ReplicaError('exhausted', 'The function took too long')
    }
    const open = (): Promise<string> =>
      collect(cache.open('1', request, read, pageBytes)).then(() => 'groups', (error: Error) => error.message)
    const failure = 'The function took too long'
    expect(await Promise.all([open(), open(), open()])).to.deep.equal([failure, failure, failure])
    expect(reads).to.equal(1)
    expect(await open()).to.equal(failure)
    expect(reads).to.equal(2)
  })

  it('take no more than the limit', async () => {
    const cache = new ReductionCache(clock, 1500)
    for (const version of ['1', '2', '3']) {
      await collect(cache.open(version, request, () => inPages(groups(2), 2), pageBytes))
    }
    expect(['1', '2', '3'].map(version => cache.get(version, request) !== undefined))
      .to.deep.equal([false, true, true])
  })
})
