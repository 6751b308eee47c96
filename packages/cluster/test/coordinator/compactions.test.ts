import { expect } from 'chai'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { ReplicaWorld, request } from '../replica-world.ts'

describe('compactions', () => {
  /** Makes the replica of a node say whether it is being compacted. */
  function compacting(world: ReplicaWorld, node: string): (now: boolean) => void {
    const { upkeep } = world.store(node)
    const replicaInfo = upkeep.replicaInfo.bind(upkeep)
    let running = false
    upkeep.replicaInfo = async context => ({ ...await replicaInfo(context), compacting: running })
    return now => { running = now }
  }

  async function seenThrough(world: ReplicaWorld, coordinator: CoordinatorNode): Promise<boolean> {
    return (await coordinator.databaseInfo(world.db, request())).compactRunning
  }

  it('are seen by a client that has requested one until the last replica has ended', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    const setSlow = compacting(world, 'c')
    await coordinator.compactDatabase(world.db, request())
    setSlow(true)
    expect(await seenThrough(world, coordinator), 'while c runs').to.equal(true)
    setSlow(false)
    expect(await seenThrough(world, coordinator), 'after c').to.equal(false)
    setSlow(true)
    expect(await seenThrough(world, coordinator), 'one that nobody has requested').to.equal(false)
  })

  it('are seen also when they are requested while a client asks about earlier ones', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    const { upkeep } = world.store('c')
    const replicaInfo = upkeep.replicaInfo.bind(upkeep)
    const answered = Promise.withResolvers<void>()
    upkeep.replicaInfo = async context => {
      const info = await replicaInfo(context)
      await answered.promise
      return info
    }
    await coordinator.compactDatabase(world.db, request())
    const earlier = seenThrough(world, coordinator)
    await world.clock.advance(0)
    await coordinator.compactDatabase(world.db, request())
    answered.resolve()
    expect(await earlier).to.equal(false)
    compacting(world, 'c')(true)
    expect(await seenThrough(world, coordinator)).to.equal(true)
  })

  it('of a node that does not answer do not hold up the others', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    await coordinator.compactDatabase(world.db, request())
    world.faults.set('c', { kind: 'fail', code: 'unreachable' })
    expect(await seenThrough(world, coordinator)).to.equal(false)
  })
})
