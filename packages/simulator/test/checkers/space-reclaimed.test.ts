import { expect } from 'chai'
import { documentStoreName, ShardKeys } from '@sectional/server'
import { spaceReclaimed } from '../../src/checkers/space-reclaimed.ts'
import { World } from '../../src/world/world.ts'

/** The prefix of a replica that the node never had. */
const strange = 999

describe('the checker of reclaimed space', () => {
  it('finds a key that belongs to no replica', async () => {
    const world = new World({ seed: 1, nodes: 1 })
    await world.run(async () => {
      await world.start(1)
      await world.ready()
      for (const path of ['/kept', '/dropped']) {
        await world.send(1, 'PUT', `${path}?q=2`)
        await world.send(1, 'POST', path, { value: 1 })
      }
      await world.send(1, 'DELETE', '/dropped')
      await world.stop(1)
    }, 60_000)
    expect(await spaceReclaimed(world.nodes)).to.deep.equal([])
    world.node(1).disk.damage(documentStoreName, new ShardKeys(strange).document('a'), new Uint8Array(1))
    expect(await spaceReclaimed(world.nodes)).to.have.length(1)
  })
})
