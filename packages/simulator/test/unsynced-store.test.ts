import { expect } from 'chai'
import { lastKey, MemoryStorage } from '@sectional/runtime'
import { FaultyDisks } from '../src/faults/faulty-disks.ts'
import { Dice } from '../src/world/dice.ts'
import { World } from '../src/world/world.ts'

const batches = 6

describe('a crash of a simulated node', () => {
  it('keeps all, none, or any number of the first batches of a store that is not synced', async () => {
    const world = new World({ seed: 60, nodes: 1 })
    await world.run(async () => {
      new FaultyDisks(world, new Dice(1), { min: 0, max: 0 })
      const left = new Set<number>()
      for (let crash = 0; crash < 60; crash++) {
        const storage = new MemoryStorage(world.node(1).disk)
        const store = await storage.open('indexes', { synced: false })
        await store.clear({ gte: '', lt: lastKey })
        await store.close()
        const again = await storage.open('indexes', { synced: false })
        for (let number = 0; number < batches; number++) {
          await again.write(batch => batch.put(String(number), Buffer.alloc(1)))
        }
        storage.crash()
        const keys = world.node(1).disk.entries('indexes').map(([key]) => key)
        expect(keys).to.deep.equal(keys.map((_, number) => String(number)))
        left.add(keys.length)
      }
      expect(left.size).to.equal(batches + 1)
    })
  })
})
