import { expect } from 'chai'
import { SeededRandom } from '@sectional/runtime'
import { edit, request } from '../replica-world.ts'
import type { Fault } from '../replica-world.ts'
import { collect } from '../views/index-world.ts'
import { everyDocument, FindWorld, indexSource } from './find-world.ts'

const storesFail: Fault = { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] }
const sources = [{ kind: 'documents' }, indexSource(['group'])] as const

describe('a query by selector after an acknowledged write', () => {
  it('asks a replica that has the write, not that of this node, which failed to store it', async () => {
    for (const source of sources) {
      const world = new FindWorld({ q: 1 })
      await world.find('c', { source })
      world.faults.set('c', storesFail)
      await world.put([{ _id: 'new', group: 1 }], 'c', 2)
      expect((await world.find('c', { source })).ids).to.deep.equal(['new'])
      expect((await world.find('c', { source, limit: 5 })).ids).to.deep.equal(['new'])
    }
  })

  it('asks others when the only replica that is known to have the write is slow', async () => {
    const world = new FindWorld({ q: 1 })
    const shard = { incarnation: world.db.incarnation, range: world.db.shards[0]!.range }
    await world.put([{ _id: 'new', group: 1 }], 'c', 3)
    const { unconfirmed } = world.coordinator('c')
    for (const node of ['b', 'c']) unconfirmed.acknowledged(shard, node, Promise.resolve(false))
    await world.clock.advance(30_000)
    for (const node of ['b', 'c']) unconfirmed.acknowledged(shard, node, new Promise(() => {}))
    world.faults.set('a', { kind: 'hang', verbs: ['find'] })
    const begin = world.clock.monotonic()
    expect((await world.find('c', { source: { kind: 'documents' } })).ids).to.deep.equal(['new'])
    expect(world.clock.monotonic() - begin).to.be.at.most(10_000)
  })

  it('tests documents that have changed since their rows were written', async () => {
    const world = new FindWorld({ q: 1 })
    const source = indexSource(['group'], [1], [1, {}])
    await world.put(['kept', 'changed', 'deleted'].map(_id => ({ _id, group: 1 })))
    const query = { selector: '{"group":1}', source, isExact: true, limit: 5 }
    expect((await world.find('a', query)).ids).to.deep.equal(['changed', 'deleted', 'kept'])
    await world.put([{ _id: 'changed', group: 2 }, { _id: 'deleted', _deleted: true }])
    expect((await world.find('a', { ...query, update: false })).ids).to.deep.equal(['kept'])
  })

  it('waits until one replica has all of them, when each lacks another one', async () => {
    const world = new FindWorld({ q: 1 })
    const { unconfirmed } = world.coordinator('c')
    const shard = { incarnation: world.db.incarnation, range: world.db.shards[0]!.range }
    for (const source of sources) {
      await world.find('c', { source })
      const stores = world.nodes.map(node => {
        const store = Promise.withResolvers<boolean>()
        unconfirmed.acknowledged(shard, node, store.promise)
        return { node, ...store }
      })
      world.calls.length = 0
      const answer = world.find('c', { source })
      await world.clock.advance(50)
      expect(world.calls.filter(({ verb }) => verb === 'find')).to.deep.equal([])
      stores.find(({ node }) => node === 'b')!.resolve(true)
      await answer
      expect(world.calls.find(({ verb }) => verb === 'find')?.node).to.equal('b')
      for (const { resolve } of stores) resolve(true)
      await world.clock.advance(50)
    }
  })

  it('contains it under concurrent writes and failing stores, whatever the node', async () => {
    for (const source of sources) {
      for (let seed = 1; seed <= 2; seed++) {
        const world = new FindWorld({ q: 2, seed })
        world.jitterTurns = 8
        const random = new SeededRandom(seed)
        const drivers = world.nodes.map(node => world.antiEntropy(node))
        for (const driver of drivers) driver.start()
        const coordinator = world.coordinator(world.nodes[seed % 3]!)
        const acknowledged = new Set<string>()
        const write = async (id: string): Promise<void> => {
          // At most one replica fails at a time, so that one which has confirmed each write can be read.
          world.faults.clear()
          const failing = world.nodes[Math.floor(random.fraction() * 6)]
          if (failing !== undefined) world.faults.set(failing, storesFail)
          const [outcome] = await coordinator
            .updateDocuments(world.db, [edit(id, null, { group: 1 })], { w: 2 }, request())
          if (outcome!.kind === 'written') acknowledged.add(id)
          const needed = [...acknowledged]
          const limit = random.fraction() < 0.5 ? null : 60
          const answer = await coordinator.find(world.db, { ...everyDocument, source, limit }, request())
          const found = new Set((await collect(answer.matches)).map(match => match.id))
          await answer.close()
          expect(needed.filter(each => !found.has(each)), `${source.kind}, seed ${seed}`).to.deep.equal([])
        }
        const writer = async (name: string): Promise<void> => {
          for (let i = 0; i < 15; i++) await write(`${name}${i}`)
        }
        await world.during(Promise.all(['k', 'l', 'm', 'n'].map(writer)))
        expect(acknowledged.size).to.be.above(40)
        for (const driver of drivers) await driver.stop()
      }
    }
  })
})
