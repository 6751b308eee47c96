import { expect } from 'chai'
import type { ChangesFeed, ChangesOptions } from '../../src/contracts/coordinator.ts'
import { edit, ReplicaWorld, request } from '../replica-world.ts'

const documents = 20

describe('the number of pending changes of a feed', () => {
  let world: ReplicaWorld

  beforeEach(async () => {
    world = new ReplicaWorld({ q: 2 })
    const edits = Array.from({ length: documents }, (_, at) => edit(`doc-${at}`, null, {}))
    await world.during(world.coordinator('a').updateDocuments(world.db, edits, { w: 3 }, request()))
  })

  function open(options: Partial<ChangesOptions>): Promise<ChangesFeed> {
    const all: ChangesOptions = { since: { kind: 'start' }, descending: false, limit: null, body: false, follow: false }
    return world.coordinator('a').openChanges(world.db, { ...all, ...options }, request())
  }

  async function take(feed: ChangesFeed, rows: number): Promise<void> {
    for (let taken = 0; taken < rows;) {
      const event = await feed.next()
      if (event?.kind !== 'rows') throw new Error('the feed has ended')
      for (const row of event.rows.slice(0, rows - taken)) {
        feed.take(event, row)
        taken++
      }
    }
  }

  for (const descending of [false, true]) {
    const order = descending ? 'descending' : 'ascending'
    it(`is that of the changes which were not taken (${order}), also when a replica fails`, async () => {
      const feed = await open({ descending, limit: 5 })
      await take(feed, 5)
      expect(await feed.pending()).to.equal(documents - 5)
      world.faults.set('a', { kind: 'fail', code: 'storage', verbs: ['countChanges', 'replicaInfo'] })
      // Another replica may not know which changes of the first one it has.
      expect(await feed.pending()).to.be.within(documents - 5, documents)
      await feed.close()
    })
  }
})
