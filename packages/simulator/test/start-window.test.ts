import { expect } from 'chai'
import { World } from '../src/world/world.ts'
import type { Answer } from '../src/world/answer.ts'

const writesAway = 12
const watchMs = 6000

interface Window {
  readonly answers: { readonly what: string; readonly sentMs: number; readonly answer: Answer }[]
  firstUpMs: number
}

/** Sends reads, single writes and `/_up` through a node from the moment at which it begins to listen. */
async function watchStart(world: World, number: number, known: readonly string[]): Promise<Window> {
  const window: Window = { answers: [], firstUpMs: Infinity }
  const running: Promise<void>[] = []
  const startMs = world.nowMs
  const ask = (what: string, sent: Promise<Answer>): void => {
    const sentMs = world.nowMs - startMs
    running.push(sent.then(answer => {
      window.answers.push({ what, sentMs, answer })
      if (what === 'up' && answer.status === 200) window.firstUpMs = Math.min(window.firstUpMs, sentMs)
    }))
  }
  for (let turn = 0; world.nowMs - startMs < watchMs; turn++) {
    ask('up', world.send(number, 'GET', '/_up'))
    ask('document', world.read(number, 'db', known[turn % known.length]!))
    ask('new database', world.send(number, 'GET', '/later'))
    ask('dropped database', world.send(number, 'GET', '/dropped'))
    if (turn % 4 === 0) ask('write', world.write(number, 'db', `lone${turn}`, { turn }))
    await world.sleep(window.firstUpMs === Infinity ? 4 : 50)
  }
  await Promise.all(running)
  return window
}

/** Returns how often each kind of request was answered with each status. */
function tally({ answers }: Window, what: string): string[] {
  return [...new Set(answers.filter(entry => entry.what === what && entry.answer.kind === 'answered')
    .map(({ answer }) => String(answer.status)))].sort()
}

describe('a node that starts', function () {
  this.timeout(60_000)

  for (const seed of [1, 2, 3]) {
    it(`serves only what its peers acknowledged while it was away, once it is up (seed ${seed})`, async () => {
      const world = new World({ seed, nodes: 3, linkDelayMs: { min: 5, max: 25 } })
      const window = await world.run(async () => {
        await world.start(1, 2, 3)
        await world.ready()
        await world.send(1, 'PUT', '/db?q=2&n=3')
        await world.send(1, 'PUT', '/dropped?q=1&n=3')
        await world.write(1, 'db', 'first', { v: 1 })
        await world.converge('db')
        world.crash(3)
        await world.sleep(8000)
        const known: string[] = []
        for (let index = 0; index < writesAway; index++) {
          const written = await world.write(1 + index % 2, 'db', `doc${index}`, { index })
          expect(written.status).to.equal(201)
          known.push(`doc${index}`)
        }
        expect((await world.send(1, 'PUT', '/later?q=1&n=3')).status).to.equal(201)
        expect((await world.send(2, 'DELETE', '/dropped')).status).to.equal(200)
        await world.start(3)
        return watchStart(world, 3, known)
      }, 600_000)
      expect(tally(window, 'up')).to.deep.equal(['200', '404'])
      expect(tally(window, 'document')).to.deep.equal(['200', '503'])
      expect(tally(window, 'new database')).to.deep.equal(['200', '503'])
      expect(tally(window, 'dropped database')).to.deep.equal(['404', '503'])
      expect(tally(window, 'write')).to.deep.equal(['201', '503'])
      expect(window.firstUpMs).to.be.lessThan(1500)
      const late = window.answers.filter(({ sentMs, answer }) => sentMs > window.firstUpMs && answer.status === 503)
      expect(late).to.deep.equal([])
    })
  }

  it('waits no longer than the bound for peers that are cut off, and then serves alone', async () => {
    const world = new World({ seed: 4, nodes: 3 })
    const window = await world.run(async () => {
      await world.start(1, 2, 3)
      await world.ready()
      await world.send(1, 'PUT', '/db?q=2&n=3')
      await world.write(1, 'db', 'first', { v: 1 })
      await world.converge('db')
      await world.sleep(1000)
      world.crash(3)
      world.partition([1, 2], [3])
      await world.start(3)
      return watchStart(world, 3, ['first'])
    }, 600_000)
    expect(tally(window, 'up')).to.deep.equal(['200', '404'])
    expect(window.firstUpMs).to.be.within(2900, 3200)
    expect(tally(window, 'document')).to.deep.equal(['200', '503'])
  })

  it('serves as soon as it leads when it is alone in its cluster', async () => {
    const world = new World({ seed: 5, nodes: 1 })
    const window = await world.run(async () => {
      await world.start(1)
      await world.ready()
      await world.send(1, 'PUT', '/db?q=2')
      await world.write(1, 'db', 'first', { v: 1 })
      await world.sleep(1000)
      world.crash(1)
      await world.start(1)
      return watchStart(world, 1, ['first'])
    }, 600_000)
    expect(tally(window, 'up')).to.deep.equal(['200', '404'])
    expect(window.firstUpMs).to.be.below(1000)
    expect(tally(window, 'document')).to.deep.equal(['200', '503'])
  })

  it('does not wait longer than the bound when all nodes start at once, as after a power failure', async () => {
    const world = new World({ seed: 6, nodes: 3 })
    const windows = await world.run(async () => {
      await world.start(1, 2, 3)
      await world.ready()
      await world.send(1, 'PUT', '/db?q=2&n=3')
      await world.write(1, 'db', 'first', { v: 1 })
      await world.converge('db')
      world.crash(1, 2, 3)
      await world.start(1, 2, 3)
      return Promise.all([1, 2, 3].map(number => watchStart(world, number, ['first'])))
    }, 600_000)
    for (const window of windows) {
      expect(window.firstUpMs).to.be.lessThan(3100)
      expect(tally(window, 'document')).to.deep.equal(['200', '503'])
    }
  })
})
