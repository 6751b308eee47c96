import { ReplicaError } from '@sectional/core'
import { expect } from 'chai'
import { defaultAntiEntropyOptions } from '../../src/anti-entropy/anti-entropy-options.ts'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'
import type { Fault } from '../replica-world.ts'

const storesFail: Fault = { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] }

async function collect<Row>(rows: AsyncIterable<readonly Row[]>): Promise<readonly Row[]> {
  const all: Row[] = []
  for await (const page of rows) all.push(...page)
  return all
}

describe('after an acknowledged write that the replica of the same node has not stored', () => {
  let world: ReplicaWorld
  let coordinator: CoordinatorNode

  beforeEach(async () => {
    world = new ReplicaWorld({ q: 1 })
    coordinator = world.coordinator('c')
    world.faults.set('c', storesFail)
    const [outcome] = await world.during(
      coordinator.updateDocuments(world.db, [edit('new', null, {})], { w: 2 }, request()))
    expect(outcome).to.deep.include({ kind: 'written', accepted: false })
  })

  it('a list, its count and documents that are opened together contain it', async () => {
    const options = { descending: false, skip: 0, limit: null, body: false, leaves: false }
    const list = await world.during(coordinator.listDocuments(world.db, options, request()))
    expect((await world.during(collect(list.rows))).map(({ id }) => id)).to.deep.equal(['new'])
    expect(list.total).to.equal(1)
    const [opened] = await world.during(
      coordinator.openDocuments(world.db, ['new'], { body: false }, request()))
    expect(opened).not.to.equal(null)
  })

  it('a read of one replica finds it', async () => {
    const opened = await world.during(
      coordinator.openDocument(world.db, 'new', { r: 1, body: false, tree: false }, request()))
    expect(opened).not.to.equal(null)
  })

  it('a read that must ask the replica that lacks it finds it, too', async () => {
    const opened = await world.during(
      coordinator.openDocument(world.db, 'new', { r: 3, body: false, tree: false }, request()))
    expect(opened).not.to.equal(null)
  })
})

describe('a replica of the same node that fails to store a write after it was read', () => {
  it('is read again when it has received the write', async () => {
    const world = new ReplicaWorld({ q: 1 })
    const coordinator = world.coordinator('c')
    const store = Promise.withResolvers<never>()
    world.store('c').storeRevisions = () => store.promise
    await world.during(coordinator.updateDocuments(world.db, [edit('new', null, {})], { w: 2 }, request()))
    const reader = async (): Promise<string> => {
      world.calls.length = 0
      await world.during(coordinator.openDocuments(world.db, ['new'], { body: false }, request()))
      await world.clock.advance(1000)
      return world.calls.find(({ verb }) => verb === 'openDocument')!.node
    }
    expect(await reader()).not.to.equal('c')
    store.reject(new ReplicaError('storage', 'the disk is full'))
    Reflect.deleteProperty(world.store('c'), 'storeRevisions')
    for (const source of ['a', 'b']) await syncReplica({
      source: world.store(source), target: world.store('c'), revsLimit: 1000, options: defaultAntiEntropyOptions,
      call: plainCall,
    })
    expect(await reader()).not.to.equal('c')
    expect(await reader()).to.equal('c')
  })
})
