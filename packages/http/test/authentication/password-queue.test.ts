import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { PasswordQueue, type PasswordSource } from '../../src/authentication/password-queue.ts'
import { MemoryNode } from '../memory-node.ts'

const source = (address: string, name: string, known = false): PasswordSource => ({ address, name, known })

/** A queue with one thread, whose work is done one after the other by `finish`. */
class OneThread {
  readonly queue = new PasswordQueue(1)
  readonly begun: string[] = []
  readonly #doors: PromiseWithResolvers<void>[] = []

  /** Adds work. The label is added to `begun` at its turn. */
  add(label: string, from: PasswordSource): Promise<string> {
    return this.queue.run(from, async () => {
      this.begun.push(label)
      const door = Promise.withResolvers<void>()
      this.#doors.push(door)
      await door.promise
      return label
    })
  }

  /** Ends all work, in the order of the turns. */
  async finish(): Promise<void> {
    for (let at = 0; at < this.#doors.length; at++) {
      this.#doors[at]!.resolve()
      await new Promise(resolve => { setImmediate(resolve) })
    }
  }
}

describe('the queue of passwords', () => {
  it('runs a bounded number at the same time', async () => {
    const queue = new PasswordQueue(2)
    const doors = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
    let running = 0
    let largest = 0
    const runs = doors.map(({ promise }) => queue.run(source('a', 'x'), async () => {
      largest = Math.max(largest, ++running)
      await promise
      running--
    }))
    for (const { resolve } of doors) resolve()
    await Promise.all(runs)
    expect(largest).to.equal(2)
  })

  it('continues after a failure', async () => {
    const queue = new PasswordQueue(1)
    const failing = queue.run(source('a', 'x'), () => Promise.reject(new Error('broken')))
    const next = queue.run(source('a', 'x'), async () => 'done')
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken')
    expect(await next).to.equal('done')
  })

  it('lets addresses take turns, and within an address names', async () => {
    const thread = new OneThread()
    const runs = [
      ...[1, 2, 3, 4].map(n => thread.add(`guess ${n}`, source('a', 'admin'))),
      ...[1, 2].map(n => thread.add(`carl ${n}`, source('a', 'carl'))), thread.add('bert', source('b', 'bert')),
    ]
    await thread.finish()
    await Promise.all(runs)
    expect(thread.begun).to.deep.equal(['guess 1', 'guess 2', 'bert', 'carl 1', 'guess 3', 'carl 2', 'guess 4'])
  })

  it('gives precedence to those who logged in before, but not all turns', async () => {
    const thread = new OneThread()
    const runs = [
      ...Array.from({ length: 3 }, (_, index) => thread.add(`nobody${index}`, source('a', `nobody${index}`))),
      ...Array.from({ length: 5 }, (_, index) => thread.add(`anna ${index}`, source('a', 'anna', true))),
    ]
    await thread.finish()
    await Promise.all(runs)
    expect(thread.begun).to.deep.equal([
      'nobody0', 'anna 0', 'anna 1', 'anna 2', 'nobody1', 'anna 3', 'anna 4', 'nobody2',
    ])
  })

  it('refuses those of the address and name with the most when more than 100 wait', async () => {
    const thread = new OneThread()
    const outcomes = [
      ...Array.from({ length: 101 }, (_, index) => thread.add('guess', source('a', `n${index % 2}`))),
      thread.add('bert', source('b', 'bert')),
    ].map(run => run.catch((error: unknown) => error))
    const refused: unknown = await outcomes[100]
    expect(refused).to.be.instanceOf(ApiError).and.to.include({ status: 503 })
    await thread.finish()
    const ended = await Promise.all(outcomes)
    expect(ended.slice(0, 100)).to.deep.equal(Array.from({ length: 100 }, () => 'guess'))
    expect(ended[101]).to.equal('bert')
    expect(thread.begun.indexOf('bert')).to.equal(2)
  })

  it('refuses those of one known client with many, and not others', async () => {
    const thread = new OneThread()
    const outcomes = [
      ...Array.from({ length: 110 }, () => thread.add('write', source('writes', 'bob', true))),
      thread.add('carol', source('c', 'carol')), thread.add('dave', source('d', 'dave', true)),
    ].map(run => run.catch((error: unknown) => error instanceof ApiError && error.status))
    await thread.finish()
    const ended = await Promise.all(outcomes)
    expect(ended.slice(-2)).to.deep.equal(['carol', 'dave'])
    expect(ended.filter(outcome => outcome === 503)).to.have.length(11)
    expect(thread.begun.indexOf('carol')).to.be.lessThan(5)
    expect(thread.begun.indexOf('dave')).to.be.lessThan(5)
  })

  it('keeps half of the places for known clients, however many others wait', async () => {
    const thread = new OneThread()
    const outcomes = [
      ...Array.from({ length: 60 }, (_, index) => thread.add('known', source('a', `n${index}`, true))),
      ...Array.from({ length: 200 }, (_, index) => thread.add('guess', source(`${index}`, 'x'))),
    ].map(run => run.catch(() => 'refused'))
    await thread.finish()
    const ended = await Promise.all(outcomes)
    expect(ended.filter(outcome => outcome === 'known')).to.have.length(51)
    expect(ended.filter(outcome => outcome === 'guess')).to.have.length(50)
  })

  it('leaves out those whose clients are gone', async () => {
    const thread = new OneThread()
    const gone = new AbortController()
    const runs = ['first', 'gone', 'last'].map(name =>
      thread.add(name, { ...source('a', name), ...name === 'gone' && { signal: gone.signal } }))
    gone.abort(new Error('the client is gone'))
    const refusal = await runs[1]!.catch((error: unknown) => error)
    expect(refusal).to.have.property('message', 'the client is gone')
    await thread.finish()
    expect(await Promise.all([runs[0], runs[2]])).to.deep.equal(['first', 'last'])
    expect(thread.begun).to.deep.equal(['first', 'last'])
  })
})

describe('logins', () => {
  it('are not held up by wrong passwords from many addresses of one IPv6 network', async () => {
    const node = new MemoryNode({ http: { passwordChecksMax: 1 } })
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    const { machine } = node
    const hashing = machine.pbkdf2.bind(machine)
    const door = Promise.withResolvers<void>()
    const passwords: string[] = []
    machine.pbkdf2 = async (...parameters) => {
      await door.promise
      passwords.push(parameters[0])
      return hashing(...parameters)
    }
    const login = async (address: string, name: string, password: string): Promise<number> =>
      (await node.post('/_session', { name, password }, { 'authorization': '', 'x-forwarded-for': address })).status
    const allWait = async (): Promise<void> => {
      for (let turn = 0; turn < 50; turn++) await new Promise(resolve => { setImmediate(resolve) })
    }
    const guesses = Array.from({ length: 50 }, (_, host) => login(`2001:db8::${host + 1}`, `name${host}`, 'guess'))
    await allWait()
    const right = login('2001:db8:0:1::1', 'admin', 'secret')
    await allWait()
    door.resolve()
    expect(await right).to.equal(200)
    expect(new Set(await Promise.all(guesses))).to.deep.equal(new Set([401]))
    expect(passwords).to.have.length(51)
    expect(passwords.indexOf('secret')).to.be.within(0, 3)
    await node.stop()
  })
})
