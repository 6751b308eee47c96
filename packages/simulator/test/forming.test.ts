import { expect } from 'chai'
import type { ControlPlaneNode } from '@sectional/server'
import { World } from '../src/world/world.ts'

/** Returns the distinct clusters that running nodes belong to. */
function clusters(world: World): string[] {
  return world.nodes.filter(({ inside }) => inside !== undefined)
    .map(({ inside }) => (inside!.control as ControlPlaneNode).appliedState()?.clusterId ?? 'none')
}

async function formed(world: World): Promise<void> {
  await world.start(1, 2, 3)
  await world.ready()
  await world.send(2, 'PUT', '/db?q=2&n=3')
  await world.write(2, 'db', 'x', { v: 1 })
  await world.converge('db')
  await world.sleep(10_000)
}

describe('a seed whose disk was emptied', function () {
  this.timeout(60_000)

  for (const seeds of [1, 2, 3]) {
    for (const awayMs of [10, 700, 30_000]) {
      it(`joins the members that are up again after ${awayMs} ms, with a seed list of ${seeds}`, async () => {
        const world = new World({ seed: 40 + seeds, nodes: 3, seeds })
        await world.run(async () => {
          await formed(world)
          world.crash(1)
          world.node(1).wipe()
          await world.sleep(awayMs)
          await world.start(1)
          await world.ready()
          await world.converge('db')
          expect(new Set(clusters(world)).size).to.equal(1)
          expect((await world.send(1, 'GET', '/db/x')).body.v).to.equal(1)
          expect((await world.send(1, 'PUT', '/other')).status).to.equal(201)
        }, 400_000)
      })
    }
  }

  it('joins a member that is not in the seed list when all seeds are emptied at once', async () => {
    const world = new World({ seed: 50, nodes: 3, seeds: 2 })
    await world.run(async () => {
      await formed(world)
      world.crash(1, 2)
      world.node(1).wipe()
      world.node(2).wipe()
      await world.sleep(10_000)
      await world.start(2, 1)
      await world.sleep(30_000)
      // Two of three voters are gone, so no node can be admitted. The test only requires that no second cluster forms.
      const inside = world.node(3).inside!.control as ControlPlaneNode
      expect(new Set(clusters(world).filter(id => id !== 'none'))).to.deep.equal(
        new Set([inside.appliedState()!.clusterId]),
      )
      expect((await world.send(1, 'PUT', '/other')).status).to.equal(503)
    }, 400_000)
  })

  it('joins members that restart while it starts', async () => {
    const world = new World({ seed: 51, nodes: 3, seeds: 1 })
    await world.run(async () => {
      await formed(world)
      world.crash(1, 2, 3)
      world.node(1).wipe()
      await world.start(1)
      await world.sleep(1000)
      await world.start(2, 3)
      await world.ready()
      expect(new Set(clusters(world)).size).to.equal(1)
    }, 400_000)
  })

  for (const away of ['paused', 'cut off'] as const) {
    it(`takes no writes after it reached its former cluster, which was ${away} when it formed a new one`, async () => {
      const world = new World({ seed: 52, nodes: 3, seeds: 1 })
      await world.run(async () => {
        await formed(world)
        world.crash(1)
        world.node(1).wipe()
        if (away === 'paused') world.pause(2, 3)
        else world.partition([1], [2, 3])
        await world.start(1)
        await world.ready([1])
        expect((await world.send(1, 'PUT', '/db?q=2')).status).to.equal(201)
        expect((await world.write(1, 'db', 'y', { v: 2 })).status).to.equal(201)
        if (away === 'paused') world.continue(2, 3)
        else world.heal()
        await world.sleep(8000)
        const up = await world.send(1, 'GET', '/_up')
        expect([up.status, up.body.reason]).to.satisfy(([status, reason]: [number, string]) =>
          status === 404 && reason.includes('which has node1@sim as a member'))
        expect((await world.write(1, 'db', 'z', { v: 3 })).status).to.equal(503)
        expect((await world.send(1, 'PUT', '/third')).status).to.equal(503)
        expect((await world.read(1, 'db', 'y')).body.v).to.equal(2)
        for (const number of [2, 3]) {
          expect((await world.send(number, 'GET', '/_up')).status).to.equal(200)
          expect((await world.write(number, 'db', `at${number}`, { v: 3 })).status).to.equal(201)
        }
        // Do what the reason tells the administrator to do.
        await world.stop(1)
        world.node(1).wipe()
        await world.start(1)
        await world.ready()
        await world.converge('db')
        expect((await world.read(1, 'db', 'x')).body.v).to.equal(1)
      }, 400_000)
    })
  }

  it('forms a new cluster in about three seconds when there is none', async () => {
    for (const nodes of [1, 3]) {
      const world = new World({ seed: 53, nodes })
      await world.run(async () => {
        await world.start(...world.nodes.map(({ number }) => number))
        const startMs = world.nowMs
        await world.ready()
        expect(world.nowMs - startMs).to.be.lessThan(3500)
      }, 60_000)
    }
  })
})
