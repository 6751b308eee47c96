import { expect } from 'chai'
import { documentStoreName, ShardKeys } from '@sectional/server'
import { readReplicas } from '../src/checkers/disk-contents.ts'
import { World } from '../src/world/world.ts'

const documents = 8

describe('damage on one disk of three', () => {
  for (const kind of ['i', 's', 'b', 'm', 'c'] as const) {
    it(`in records of kind ${kind}: reads stay correct through every node, and the replica is replaced`, async () => {
      const world = new World({ seed: 5, nodes: 3, scrubPauseMs: 30_000 })
      await world.run(async () => {
        await world.start(1, 2, 3)
        await world.ready()
        expect((await world.send(1, 'PUT', '/db?q=1&n=3')).status).to.equal(201)
        for (let at = 0; at < documents; at++) {
          expect((await world.write(1 + at % 3, 'db', `d${at}`, { at })).status).to.equal(201)
        }
        await world.converge('db')
        await world.sleep(5000)
        const { disk } = world.node(2)
        const before = await histories(world)
        const found = disk.entries(documentStoreName)
          .filter(([key]) => ShardKeys.prefixOf(key) > 0 && ShardKeys.kindOf(key) === kind)
        expect(found.length).to.be.greaterThan(0)
        for (const [key, value] of found) {
          disk.damage(
            documentStoreName, key, Uint8Array.from(value, (byte, at) => at === value.length - 1 ? byte ^ 4 : byte),
          )
        }
        for (let at = 0; at < documents; at++) {
          for (const node of [1, 2, 3]) expect((await world.read(node, 'db', `d${at}`)).body).to.include({ at })
        }
        await world.sleep(60_000)
        await world.converge('db')
        const replicas = await readReplicas(world.nodes, world.node(1).inside!.control.state()!.databases.get('db')!)
        expect(replicas.map(replica => [replica.problems, replica.documents.size])).to.deep.equal(
          [1, 2, 3].map(() => [[], documents]),
        )
        const after = await histories(world)
        expect(after.map((history, at) => history === before[at])).to.deep.equal([true, false, true])
        await world.stop(1, 2, 3)
      })
    })
  }
})

async function histories(world: World): Promise<string[]> {
  const replicas = await readReplicas(world.nodes, world.node(1).inside!.control.state()!.databases.get('db')!)
  return replicas.toSorted((a, b) => a.node < b.node ? -1 : 1).map(({ history }) => history)
}
