import { expect } from 'chai'
import type { Answer } from '../src/world/answer.ts'
import { World } from '../src/world/world.ts'

const seeds = [1, 2, 3, 4]
const target = '/db/x'

interface Setting {
  readonly world: World
  /** The revision of the document that all clients edit. */
  readonly first: string
  /** Nodes of the document's replicas, in the order in which they are asked to decide. */
  readonly deciders: readonly [number, number, number]
}

/** Runs `act` with three nodes and one document that all of them store. */
async function play(seed: number, act: (setting: Setting) => Promise<void>): Promise<void> {
  const world = new World({ seed, nodes: 3 })
  await world.run(async () => {
    await world.start(1, 2, 3)
    await world.ready()
    await world.send(1, 'PUT', '/db?q=1&n=3')
    const first = (await world.write(1, 'db', 'x', { v: 0 })).body.rev
    await world.converge('db')
    await world.sleep(5000)
    const { replicas } = world.node(1).inside!.control.state()!.databases.get('db')!.shards[0]!
    const deciders = replicas.map(({ node }) => Number(/\d+/.exec(node)![0])) as unknown as [number, number, number]
    await act({ world, first, deciders })
    await Promise.all([1, 2, 3].map(node => world.stop(node)))
  })
}

/** Waits until all replicas are equal, and returns the revisions of the document's leaves. */
async function leaves(world: World, node: number): Promise<readonly string[]> {
  await world.sleep(20_000)
  await world.converge('db')
  const { body } = await world.send(node, 'GET', `${target}?conflicts=true&deleted_conflicts=true`)
  return [body._rev, ...body._conflicts ?? [], ...body._deleted_conflicts ?? []]
}

const ways: Readonly<Record<string, (world: World, node: number, first: string) => Promise<Pick<Answer, 'status'>>>> = {
  PUT: (world, node, first) => world.send(node, 'PUT', `${target}?rev=${first}`, { claimed: true }),
  DELETE: (world, node, first) => world.send(node, 'DELETE', `${target}?rev=${first}`),
  _bulk_docs: async (world, node, first) => {
    const answer = await world.send(node, 'POST', '/db/_bulk_docs', {
      docs: [{ _id: 'x', _rev: first, claimed: true }],
    })
    const [row] = Array.isArray(answer.body) ? answer.body : [answer.body]
    return { status: row.ok ? answer.status : row.error === 'conflict' ? 409 : 503 }
  },
}

describe('edits whose decider does not answer', function () {
  this.timeout(60_000)

  for (const [way, send] of Object.entries(ways)) {
    it(`succeed for one of two clients with the same content (${way}, the decider is paused)`, async () => {
      for (const seed of seeds) {
        await play(seed, async ({ world, first, deciders: [a, b, c] }) => {
          world.pause(a)
          const startedMs = world.nowMs
          const answers = await Promise.all([b, c].map(node => send(world, node, first)))
          expect(world.nowMs - startedMs, `seed ${seed}`).to.be.below(2000)
          world.continue(a)
          const statuses = answers.map(({ status }) => status).sort()
          expect(statuses[0], `seed ${seed}`).to.be.oneOf([200, 201])
          expect(statuses[1], `seed ${seed}`).to.be.oneOf([409, 503])
        })
      }
    })
  }

  it('are answered with 503 while they may take effect, when the decider crashes after it has decided', async () => {
    for (const seed of seeds) {
      await play(seed, async ({ world, first, deciders: [a, b, c] }) => {
        world.cut(a, c)
        world.cut(c, a)
        await world.sleep(6000)
        // The answers of node a to node b are lost.
        world.cut(a, b)
        const one = world.send(b, 'PUT', `${target}?rev=${first}`, { v: 'one', seed })
        // Node b first compares its design documents with those of two replicas, which takes the time of a hedge.
        await world.sleep(400)
        world.crash(a)
        const two = await world.send(c, 'PUT', `${target}?rev=${first}`, { v: 'two', seed })
        const answer = await one
        expect([answer.status, two.status], `seed ${seed}`).to.deep.equal([503, 201])
        world.heal()
        await world.start(a)
        expect(await leaves(world, c), `seed ${seed}`).to.have.length(2)
      })
    }
  })

  it('are conflicts only when they never take effect, however late the decider takes them', async () => {
    for (const seed of seeds) {
      await play(seed, async ({ world, first, deciders: [a, b, c] }) => {
        world.pause(a)
        const writes = [b, c].map((node, index) => world.send(node, 'PUT', `${target}?rev=${first}`, { by: index }))
        await world.sleep(1500)
        world.continue(a)
        const answers = await Promise.all(writes)
        const left = await leaves(world, b)
        expect(answers.filter(({ status }) => status === 201), `seed ${seed}`).to.have.length.at.most(1)
        const conflicts = answers.filter(({ status }) => status === 409)
        expect(left.length + conflicts.length, `seed ${seed}: ${answers.map(({ status }) => status)}`).to.be.at.most(2)
      })
    }
  })

  it('are not held up by a peer that is silently cut off, one way or both', async () => {
    for (const seed of seeds) {
      for (const both of [false, true]) {
        await play(seed, async ({ world, first, deciders: [a, b, c] }) => {
          world.cut(a, b)
          if (both) world.cut(b, a)
          const startedMs = world.nowMs
          const { status, body } = await world.send(b, 'PUT', `${target}?rev=${first}`, { v: 1 })
          expect(status, `seed ${seed}`).to.equal(201)
          expect((await world.send(b, 'PUT', `${target}?rev=${body.rev}`, { v: 2 })).status).to.equal(201)
          expect(world.nowMs - startedMs, `seed ${seed}`).to.be.below(2000)
          world.heal()
          expect(await leaves(world, c), `seed ${seed}`).to.have.length(1)
        })
      }
    }
  })
})

describe('edits through the other nodes while the decider stops in order', function () {
  this.timeout(60_000)
  const clients = 12
  const trafficMs = 400

  /** Sends one request of each kind, one after the other, and reports the statuses that are not the expected ones. */
  async function edit(world: World, node: number, id: string): Promise<string[]> {
    const unexpected: string[] = []
    const send = async (expected: number, method: string, path: string, body?: object): Promise<Answer> => {
      const answer = await world.send(node, method, path, body)
      if (answer.status !== expected) unexpected.push(`${method} ${path}: ${answer.status} instead of ${expected}`)
      return answer
    }
    await send(409, 'PUT', target, { v: 1 })
    await send(409, 'PUT', `${target}?rev=1-${'f'.repeat(32)}`, { v: 1 })
    const made = await send(201, 'PUT', `/db/${id}`, { v: 1 })
    await send(409, 'PUT', `/db/${id}`, { v: 2 })
    const deleted = await send(200, 'DELETE', `/db/${id}?rev=${made.body?.rev}`)
    await send(404, 'DELETE', `/db/${id}?rev=${made.body?.rev}`)
    await send(201, 'PUT', `/db/${id}`, { v: 3 })
    await send(409, 'PUT', `/db/${id}?rev=${deleted.body?.rev}`, { v: 4 })
    await send(200, 'GET', target)
    return unexpected
  }

  it('have the expected outcomes, also those that conflict', async () => {
    for (const seed of seeds) {
      await play(seed, async ({ world, deciders: [a, b, c] }) => {
        const endMs = world.nowMs + trafficMs
        let rounds = 0
        const traffic = Array.from({ length: clients }, async (_, client) => {
          const unexpected: string[] = []
          for (let round = 0; world.nowMs < endMs; round++, rounds++) {
            unexpected.push(...await edit(world, client % 2 === 0 ? b : c, `${client} ${round}`))
          }
          return unexpected
        })
        await world.sleep(trafficMs / 2)
        await world.stop(a)
        expect((await Promise.all(traffic)).flat(), `seed ${seed}`).to.deep.equal([])
        expect(rounds).to.be.above(clients)
      })
    }
  })
})
