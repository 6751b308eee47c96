import { expect } from 'chai'
import type { ChangesFeed, ChangesOptions } from '../../src/contracts/coordinator.ts'
import { edit, ReplicaWorld, request } from '../replica-world.ts'

const following: ChangesOptions = {
  since: { kind: 'start' }, descending: false, limit: null, body: false, follow: true,
}

describe('a feed that follows the changes of another node', () => {
  let world: ReplicaWorld
  let feed: ChangesFeed

  beforeEach(async () => {
    world = new ReplicaWorld({ nodes: ['a', 'b'], n: 1 })
    await world.coordinator('a').updateDocuments(world.db, [edit('old', null, {})], {}, request())
    feed = await world.coordinator('b').openChanges(world.db, following, request())
  })

  it('waits in each outage as long as in the first one', async () => {
    const seen: string[] = []
    const reading = (async () => {
      for (let event = await feed.next(); event !== null; event = await feed.next()) {
        if (event.kind !== 'rows') continue
        for (const row of event.rows) {
          feed.take(event, row)
          seen.push(row.id)
        }
      }
      return 'closed'
    })().catch(String)
    await world.clock.advance(0)
    for (const id of ['first', 'second', 'third']) {
      world.cut('a', 'b')
      await world.clock.advance(20_000)
      await world.coordinator('a').updateDocuments(world.db, [edit(id, null, {})], {}, request())
      world.heal()
      await world.clock.advance(2_000)
    }
    expect(seen).to.deep.equal(['old', 'first', 'second', 'third'])
    await feed.close()
    expect(await reading).to.equal('closed')
  })

  it('is closed for everyone who closes it while it reads', async () => {
    world.faults.set('a', { kind: 'hang', verbs: ['scanChanges'] })
    const last = feed.next()
    await world.clock.advance(0)
    const closed: string[] = []
    for (const who of ['first', 'second']) void feed.close().then(() => { closed.push(who) })
    await world.clock.advance(0)
    expect(closed).to.have.members(['first', 'second'])
    expect(await last).to.equal(null)
  })
})
