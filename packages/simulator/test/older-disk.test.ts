import { expect } from 'chai'
import { World } from '../src/world/world.ts'

/** Texts of log lines about an older copy of a disk. */
const givesUp = /is an older copy of the one that it had/

interface Story {
  readonly seed: number
  readonly nodes: number
  readonly q: number
  readonly n: number
  /** Returns the number of the node whose disk is replaced, given the leader's number. */
  readonly pick: (leader: number) => number
  /** Whether the copy is made while the process runs, like a snapshot of a volume. */
  readonly running?: boolean
}

function leaderOf(world: World): number {
  const leader = world.node(1).inside?.control.leader()
  return world.nodes.find(({ name }) => name === leader)?.number ?? 0
}

/** Waits until a leader is known and all nodes serve requests. */
async function settled(world: World): Promise<void> {
  await world.ready()
  await world.eventually('a leader', 60_000, async () => leaderOf(world) === 0 ? 'none is known' : null)
}

async function tell({ seed, nodes, q, n, pick, running = false }: Story): Promise<void> {
  const lines: string[] = []
  const world = new World({ seed, nodes, onLine: line => lines.push(line) })
  await world.run(async () => {
    await world.start(...world.nodes.map(({ number }) => number))
    await settled(world)
    const old = pick(leaderOf(world))
    const other = old === 1 ? 2 : 1
    for (const name of ['kept', 'deleted']) {
      expect((await world.send(other, 'PUT', `/${name}?q=${q}&n=${n}`)).status).to.be.oneOf([201, 202])
    }
    const write = async (through: number, from: number, to: number): Promise<void> => {
      for (let at = from; at < to; at++) {
        expect((await world.write(through, 'kept', `doc ${at}`, { at })).status, `doc ${at}`).to.be.oneOf([201, 202])
      }
    }
    await write(other, 0, 30)
    await world.converge('kept')
    if (!running) await world.stop(old)
    const copy = world.node(old).disk.copy()
    if (!running) await world.start(old)
    await settled(world)

    // These writes get sequences that the older copy assigns again.
    await write(old, 30, 60)
    expect((await world.send(old, 'PUT', '/new')).status).to.be.oneOf([201, 202])
    expect((await world.send(other, 'DELETE', '/deleted')).status).to.equal(200)
    await world.converge('kept')
    const { body: { last_seq: token } } = await world.send(old, 'GET', '/kept/_changes')
    world.crash(old)
    world.node(old).putBack(copy)
    await world.start(old)
    await write(other, 60, 70)
    await world.eventually(
      'the older copy to be given up', 60_000,
      async () => lines.some(line => givesUp.test(line)) ? null : 'nobody said so',
    )
    await settled(world)
    await write(old, 70, 90)
    await world.converge('kept')
    await world.eventually('all metadata to be equal', 60_000, async () => {
      for (const { number } of world.nodes) {
        const { body } = await world.send(number, 'GET', '/_all_dbs')
        if (String(body) !== 'kept,new') return `node ${number} lists ${body}`
      }
      return null
    })
    for (const { number } of world.nodes) {
      for (let at = 0; at < 90; at++) {
        expect((await world.read(number, 'kept', `doc ${at}`)).status, `doc ${at} by node ${number}`).to.equal(200)
      }
      const { body } = await world.send(number, 'GET', `/kept/_changes?since=${encodeURIComponent(token)}`)
      const told = new Set(body.results.map(({ id }: { id: string }) => id))
      for (let at = 60; at < 90; at++) {
        expect(told.has(`doc ${at}`), `doc ${at} in the feed of node ${number}`).to.equal(true)
      }
    }
    expect((await world.send(old, 'PUT', '/made-by-the-old-node')).status).to.be.oneOf([201, 202])
    await world.stop(...world.nodes.map(({ number }) => number))
    for (const node of world.nodes) expect(node.leaks, node.name).to.deep.equal([])
  })
}

describe('a node whose disk is an older copy', function () {
  this.timeout(20_000)

  const follower = (leader: number): number => leader === 2 ? 3 : 2
  for (const story of [
    { seed: 1, nodes: 3, q: 1, n: 3, pick: follower },
    { seed: 2, nodes: 3, q: 8, n: 3, pick: (leader: number) => leader },
    { seed: 3, nodes: 3, q: 4, n: 2, pick: follower },
    { seed: 5, nodes: 2, q: 2, n: 2, pick: () => 2 },
    { seed: 6, nodes: 5, q: 4, n: 3, pick: follower },
    { seed: 7, nodes: 3, q: 2, n: 3, pick: follower, running: true },
  ]) {
    const { nodes, q, n, seed, running = false } = story
    const copied = running ? ', copied while it ran' : ''
    it(`loses nothing for a cluster of ${nodes}, q = ${q}, n = ${n}${copied} (seed ${seed})`, async () => {
      await tell(story)
    })
  }
})
