import { ApiError, timeSpanMin, timeSpanMs } from '@sectional/core'
import { expect } from 'chai'
import { edit, ReplicaWorld, request } from '../replica-world.ts'

async function write(world: ReplicaWorld, node: string, names: readonly string[]): Promise<void> {
  const edits = names.map(id => edit(id, null, { id }))
  await world.during(world.coordinator(node).updateDocuments(world.db, edits, { w: world.nodes.length }, request()))
}

describe('the state of a database', () => {
  it('is the same on every node until something is written', async () => {
    const world = new ReplicaWorld({ q: 4 })
    await write(world, 'a', Array.from({ length: 30 }, (_, i) => `doc-${i}`))
    const states = async (): Promise<Set<string>> =>
      new Set(await Promise.all(
        world.nodes.map(async node => (await world.coordinator(node).databaseState(world.db, request())).fingerprint),
      ))
    const before = await states()
    expect(before.size).to.equal(1)
    await write(world, 'b', ['new'])
    const after = await states()
    expect(after.size).to.equal(1)
    expect([...after]).to.not.deep.equal([...before])
  })

  it('leaves out replicas that do not answer in time', async () => {
    const world = new ReplicaWorld()
    world.faults.set('c', { kind: 'hang' })
    const state = await world.during(world.coordinator('a').databaseState(world.db, request()), 5000)
    expect(state.fingerprint).to.match(/^[0-9a-f]{32}$/)
  })

  it('is returned by a node without replicas soon after no replica answered in time', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c', 'd'], n: 3 })
    const coordinator = world.coordinator('d')
    const state = async (): Promise<string> =>
      (await world.during(coordinator.databaseState(world.db, request()), 5000)).fingerprint
    for (const node of ['a', 'b', 'c']) world.faults.set(node, { kind: 'hang' })
    expect(await state().catch((error: unknown) => error)).to.be.instanceOf(ApiError)
    world.faults.clear()
    expect(await state()).to.match(/^[0-9a-f]{32}$/)
  })
})

describe('the time spans of a database', () => {
  it('have the number of changes in each, of every replica', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'], q: 2 })
    world.time = timeSpanMin
    const coordinator = world.coordinator('b')
    await write(world, 'a', ['one', 'two', 'three', 'four'])
    world.time += 2 * timeSpanMs
    await write(world, 'a', ['five', 'six', 'seven', 'eight', 'nine'])
    const counts = async (clear: boolean): Promise<readonly number[]> => {
      const times = await coordinator.timeSpans(world.db, clear, request())
      expect(times.map(({ node, range }) => `${node} ${range.begin}`)).to.have.length(4)
      expect(new Set(times.map(({ node, range }) => `${node} ${range.begin}`)).size).to.equal(4)
      return [0, 1].map(at => times.reduce((sum, { spans }) => sum + (spans[at]?.count ?? 0), 0))
    }
    expect(await counts(false)).to.deep.equal([2 * 4, 2 * 5])
    expect(await counts(true)).to.deep.equal([0, 0])
  })
})
