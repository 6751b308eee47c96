import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

const hash = (key: string): string => `-pbkdf2:sha256-${key.padStart(64, '0')},11,1`

describe('settings of all nodes, when the node that is asked crashes', () => {
  let cluster: MemoryCluster
  beforeEach(async () => {
    cluster = new MemoryCluster(3, {}, [`root = ${hash('1')}`])
    await Promise.all([1, 2, 3].map(number => cluster.start(number)))
    await cluster.ready()
  })
  afterEach(() => cluster.close())

  const numbers = [1, 2, 3]
  const settleMs = 5_000
  /** By then a request is answered. */
  const turnsMax = 15
  const path = (name: string): string => `/_node/_local/_config/${name}`
  const admin = path('admins/bert')

  async function on(number: number, method: string, target: string, json?: unknown): Promise<unknown> {
    const { status, body } = await cluster.send(number, method, target, json)
    return status === 200 ? body : status
  }

  async function all(target: string): Promise<readonly unknown[]> {
    return Promise.all(numbers.map(number => on(number, 'GET', target)))
  }

  async function restart(): Promise<void> {
    cluster.crash(1)
    await cluster.start(1)
    await cluster.ready()
    // When the leader has crashed, the others do not know at once that a change is decided.
    await cluster.clock.advance(settleMs)
  }

  /** Sends a request to node 1, and lets the node crash some turns later. Returns whether the request was answered. */
  async function crashDuring(turns: number, method: string, target: string, json?: unknown): Promise<boolean> {
    let isAnswered = false
    void cluster.send(1, method, target, json).then(({ status }) => { isAnswered = status === 200 }, () => {})
    for (let turn = 0; turn < turns; turn++) {
      if (turn % 4 === 3) await cluster.clock.advance(5)
      else await new Promise(setImmediate)
    }
    const wasAnswered = isAnswered
    await restart()
    return wasAnswered
  }

  it('are the old or the new ones, the same on every node, and the new ones after an answer', async () => {
    let old: unknown = 404
    const seen = new Set<string>()
    for (let step = 0; step < 2 * turnsMax; step++) {
      const [turns, removes] = [Math.floor(step / 2), step % 2 === 1]
      if (removes && old === 404) old = await on(2, 'PUT', `${admin}?raw=true`, hash('ff'))
      const next: unknown = removes ? 404 : hash(`${turns}`)
      const isAnswered = removes
        ? await crashDuring(turns, 'DELETE', admin)
        : await crashDuring(turns, 'PUT', `${admin}?raw=true`, next)
      await cluster.until('the nodes agree', async () => new Set(await all(admin)).size === 1)
      const [found] = await all(admin)
      expect([old, next], `after ${turns} turns`).to.include(found)
      if (isAnswered) expect(found, `answered after ${turns} turns`).to.equal(next)
      const [method, answer] = [removes ? 'DELETE' : 'PUT', isAnswered ? 'answered' : 'not answered']
      seen.add(`${method}: ${answer}, ${found === next ? 'new' : 'old'}`)
      old = found
    }
    expect([...seen]).to.include.members([
      'PUT: not answered, old', 'PUT: answered, new', 'DELETE: not answered, old', 'DELETE: answered, new',
    ])
  }).timeout(60_000)

  it('are removed by a repeated request, when they had been removed from the metadata only', async () => {
    await on(1, 'PUT', `${admin}?raw=true`, hash('2'))
    cluster.changes[0] = `[admins]\nbert = ${hash('3')}\n`
    await on(1, 'POST', path('_reload'), {})
    expect(await all(admin)).to.deep.equal([hash('3'), hash('2'), hash('2')])
    const reached = Promise.withResolvers<void>()
    cluster.beforeWrite = () => {
      reached.resolve()
      return new Promise(() => {})
    }
    void cluster.send(1, 'DELETE', admin).catch(() => {})
    await cluster.finish(reached.promise)
    cluster.beforeWrite = async () => {}
    await restart()
    expect(await all(admin), 'the file of node 1 overrides').to.deep.equal([hash('3'), 404, 404])
    expect(await on(1, 'DELETE', admin)).to.equal(hash('3'))
    await restart()
    expect(await all(admin)).to.deep.equal([404, 404, 404])
  })
})
