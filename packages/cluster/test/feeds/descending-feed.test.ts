import { expect } from 'chai'
import { edit, ReplicaWorld, request } from '../replica-world.ts'

describe('a descending feed', () => {
  it('fails, and repeats no row, when its replica fails in the middle', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'], q: 1 })
    const coordinator = world.coordinator('a')
    const edits = Array.from({ length: 1200 }, (_, number) => edit(`doc${number}`, null, {}))
    await coordinator.updateDocuments(world.db, edits, { w: 2 }, request())
    world.faults.set('a', { kind: 'break-scan', afterPages: 1 })
    const feed = await coordinator.openChanges(world.db, {
      since: { kind: 'start' }, descending: true, limit: null, body: false, follow: false,
    }, request())
    const seen: string[] = []
    let failure: unknown
    try {
      for (let event = await feed.next(); event !== null; event = await feed.next()) {
        if (event.kind === 'rows') seen.push(...event.rows.map(({ id }) => id))
      }
    } catch (error) {
      failure = error
    }
    expect(failure).to.be.an('error')
    expect(seen).to.not.have.length(0)
    expect(new Set(seen).size).to.equal(seen.length)
    await feed.close()
    await coordinator.stop()
  })
})
