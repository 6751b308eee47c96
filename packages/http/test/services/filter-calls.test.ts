import { expect } from 'chai'
import { ClientGoneError, ManualClock, SandboxError } from '@sectional/runtime'
import { FilterCalls } from '../../src/services/filter-calls.ts'

interface Running { readonly end: (error?: Error) => void; readonly result: Promise<void> }

describe('calls of filters', () => {
  const clock = new ManualClock()
  const request = (incarnation = 'db', signal = new AbortController().signal) => ({ database: { incarnation }, signal })
  /** Begins a call. `begun` gets its name when it is its turn. */
  const call = (calls: FilterCalls, begun: string[], name: string, from = request()): Running => {
    let end!: Running['end']
    const ended = new Promise<void>((resolve, reject) => {
      end = error => { if (error === undefined) resolve(); else reject(error) }
    })
    ended.catch(() => {})
    return { end, result: calls.run(from, () => { begun.push(name); return ended }) }
  }

  it('are at most 16 at a time for one database, in their order', async () => {
    const calls = new FilterCalls(clock)
    const begun: string[] = []
    const running = Array.from({ length: 18 }, (_, index) => call(calls, begun, String(index)))
    const other = call(calls, begun, 'other', request('other'))
    await clock.advance(0)
    expect(begun).to.have.length(17).and.include('other').and.not.include('16')
    running[3]!.end()
    await running[3]!.result
    await clock.advance(0)
    expect(begun.slice(17)).to.deep.equal(['16'])
    const failed = running[5]!.result.catch((error: Error) => error.message)
    running[5]!.end(new Error('failed'))
    expect(await failed).to.equal('failed')
    await clock.advance(0)
    expect(begun.slice(17)).to.deep.equal(['16', '17'])
    for (const each of [...running, other]) each.end()
    await Promise.allSettled([...running, other].map(({ result }) => result))
    const next = call(calls, begun, 'next')
    await clock.advance(0)
    expect(begun.at(-1)).to.equal('next')
    next.end()
    await next.result
  })

  it('are not begun when their client left while they waited', async () => {
    const calls = new FilterCalls(clock)
    const begun: string[] = []
    const running = Array.from({ length: 16 }, (_, index) => call(calls, begun, String(index)))
    const leaving = new AbortController()
    const left = call(calls, begun, 'left', request('db', leaving.signal)).result.catch((error: Error) => error)
    leaving.abort()
    for (const each of running) each.end()
    expect(await left).to.be.instanceOf(ClientGoneError)
    expect(begun).to.not.include('left')
  })

  it('give way to others while they wait to be repeated', async () => {
    const calls = new FilterCalls(clock)
    const begun: string[] = []
    const running = Array.from({ length: 17 }, (_, index) => call(calls, begun, String(index)))
    await clock.advance(0)
    running[0]!.end(new SandboxError('overloaded', 'full'))
    await clock.advance(1)
    expect(begun.at(-1)).to.equal('16')
    for (const each of running.slice(1)) each.end()
    await Promise.all(running.slice(1).map(({ result }) => result))
    const refused = running[0]!.result.catch((error: SandboxError) => error.code)
    for (let ms = 0; ms <= 30_000; ms += 100) await clock.advance(100)
    expect(await refused).to.equal('overloaded')
    expect(begun.filter(name => name === '0').length).to.be.within(15, 25)
  })
})
