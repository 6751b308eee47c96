import { ReplicaError } from '@sectional/core'
import type { UpdateDocumentsRequest } from '@sectional/core'
import { expect } from 'chai'
import { outcomeOf, revisionOf, worldWithDocument } from '../edit-world.ts'
import type { Edit } from '../edit-world.ts'
import { edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'

describe('the review of a conflict', () => {
  it('has the decider decide again when the parent arrived after its decision', async () => {
    const { world, parent } = await worldWithDocument()
    world.isolate('a')
    const second = edit('x', parent, { v: 2 })
    await world.coordinator('b').updateDocuments(world.db, [second], {}, request())
    world.heal()
    const store = world.store('a')
    const decide = store.updateDocuments.bind(store)
    let decisions = 0
    store.updateDocuments = async (asked: UpdateDocumentsRequest, call) => {
      const reply = await decide(asked, call)
      // The parent arrives at once, for example by read repair.
      if (decisions++ === 0) {
        await store.storeRevisions(
          {
            revisions: [{
              id: 'x', path: { start: 2, ids: [second.revisionHash, parent.slice(2)] }, deleted: false,
              body: second.body,
            }],
            revsLimit: 1000,
          },
          plainCall,
        )
      }
      return reply
    }
    const deletion = edit('x', revisionOf(second), {}, true)
    expect(await outcomeOf(world.coordinator('c').updateDocuments(world.db, [deletion], {}, request()))).to.include({
      kind: 'written',
    })
    expect(decisions).to.equal(2)
  })

  it('reports an unknown outcome for a conflict that it cannot examine', async () => {
    const { world, parent } = await worldWithDocument()
    for (const node of world.nodes) {
      world.faults.set(node, { kind: 'fail', code: 'unreachable', verbs: ['diffRevisions'] })
    }
    const stale = edit('x', '1-00', { v: 2 })
    expect(await outcomeOf(world.coordinator('b').updateDocuments(world.db, [stale], {}, request()))).to.equal(503)
    world.faults.clear()
    expect(await outcomeOf(world.coordinator('b').updateDocuments(world.db, [stale], {}, request()))).to.deep.equal({
      kind: 'conflict',
    })
    // A minority that has never seen the parent cannot know either.
    world.isolate('c')
    const coordinator = world.coordinator('c')
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [edit('x', '2-ff', {})], {}, request()))).to.equal(503)
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request()))).to.deep.equal({
      kind: 'conflict',
    })
    const known = edit('x', parent, { v: 3 })
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [known], {}, request()))).to.include({
      kind: 'written', accepted: true,
    })
  })
})

describe('a conflict whose decider fails before it is reviewed', () => {
  /** Returns a world in which `b` lacks the second revision of `x`. */
  async function lagging(): Promise<{ readonly world: ReplicaWorld; readonly parent: string }> {
    const { world, parent } = await worldWithDocument()
    world.isolate('b')
    await world.coordinator('a').updateDocuments(world.db, [edit('x', parent, { v: 2 })], {}, request())
    world.heal()
    return { world, parent }
  }

  /** Makes a node the first in the shard map. */
  function decidesFirst(world: ReplicaWorld, first: string): void {
    const replicas = [first, ...world.nodes.filter(node => node !== first)].map(node => ({ node, filling: false }))
    world.setDatabase({ ...world.db, shards: [{ ...world.db.shards[0]!, replicas }] })
  }

  it('is decided by another replica, also when the node is silent', async () => {
    for (const fault of [{ kind: 'hang' }, { kind: 'fail', code: 'unreachable' }] as const) {
      const { world, parent } = await lagging()
      const verbs = ['diffRevisions', 'openDocument'] as const
      world.faults.set('a', { ...fault, verbs })
      const coordinator = world.coordinator('b')
      const startedMs = world.clock.monotonic()
      const written = coordinator.updateDocuments(world.db, [edit('x', parent, { v: 3 })], {}, request())
      expect(await outcomeOf(world.during(written))).to.deep.equal({ kind: 'conflict' })
      expect(world.clock.monotonic() - startedMs).to.be.below(1100)
      await world.during(coordinator.stop())
    }
  })

  it('is decided as fast when there are several hundred conflicts and the node is silent', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('b')
    const creations = (value: object): Edit[] => Array.from({ length: 300 }, (_, at) => edit(`${at}`, null, value))
    await coordinator.updateDocuments(world.db, creations({ v: 1 }), { w: 3 }, request())
    world.faults.set('a', { kind: 'hang', verbs: ['diffRevisions', 'openDocument'] })
    const startedMs = world.clock.monotonic()
    const outcomes = await world.during(
      coordinator.updateDocuments(world.db, creations({ v: 2 }), {}, request()))
    expect(new Set(outcomes.map(({ kind }) => kind))).to.deep.equal(new Set(['conflict']))
    expect(world.clock.monotonic() - startedMs).to.be.below(1100)
    await world.during(coordinator.stop())
  })

  it('is not overruled by a replica that cannot be compared with a majority', async () => {
    const { world, parent } = await lagging()
    world.faults.set('a', { kind: 'stop', left: 1 })
    world.faults.set('c', { kind: 'fail', code: 'unreachable' })
    const coordinator = world.coordinator('b')
    const before = (await world.leavesOf('x')).b
    const edits = [edit('x', parent, { v: 3 }), edit('y', null, {})]
    const outcomes = await coordinator.updateDocuments(world.db, edits, {}, request())
    expect(outcomes[0]).to.include({ kind: 'error', status: 503 })
    expect(outcomes[1]).to.include({ kind: 'written', accepted: false })
    expect((await world.leavesOf('x')).b).to.deep.equal(before)
  })

  it('is decided by another replica when the decider cannot be brought up to date', async () => {
    const { world, parent } = await lagging()
    decidesFirst(world, 'b')
    world.faults.set('b', { kind: 'fail', code: 'unreachable', verbs: ['storeRevisions'] })
    const mine = edit('x', revisionOf(edit('x', parent, { v: 2 })), { v: 3 })
    expect(await outcomeOf(world.coordinator('a').updateDocuments(world.db, [mine], {}, request())))
      .to.deep.equal({ kind: 'written', revision: revisionOf(mine), accepted: false })
  })

  it('is unknown when the decider fails while it decides again', async () => {
    const { world, parent } = await lagging()
    // b lacks the parent, receives it and makes the edit, but its second answer is lost.
    decidesFirst(world, 'b')
    const b = world.store('b')
    const decide = b.updateDocuments.bind(b)
    let decisions = 0
    b.updateDocuments = async (decided, call) => {
      const reply = await decide(decided, call)
      if (++decisions === 2) throw new ReplicaError('unreachable', 'the link broke during the call')
      return reply
    }
    const mine = edit('x', revisionOf(edit('x', parent, { v: 2 })), { v: 3 })
    expect(await outcomeOf(world.coordinator('a').updateDocuments(world.db, [mine], {}, request()))).to.equal(503)
    expect(decisions).to.equal(2)
    expect((await world.leavesOf('x')).b).to.deep.equal([{ revision: revisionOf(mine), deleted: false }])
  })
})

describe('a conflict of an edit whose parent the decider lacks', () => {
  /** The first replica lacks the current revision of `x`, which was made while it was away. */
  const worldWithLaggingDecider = async () => {
    const { world, parent } = await worldWithDocument()
    const coordinator = world.coordinator('b')
    world.isolate('a')
    const second = edit('x', parent, { v: 2 })
    await coordinator.updateDocuments(world.db, [second], {}, request())
    world.heal()
    return { world, coordinator, current: revisionOf(second) }
  }

  const unreadable = [
    ['cannot be read', { kind: 'fail', code: 'unreachable', verbs: ['openDocument'] }],
    ['is too slow to be read', { kind: 'hang', verbs: ['openDocument'] }],
  ] as const
  for (const [reason, fault] of unreadable) {
    it(`is not answered when the decider ${reason}, so that it does not receive the parent`, async () => {
      const { world, coordinator, current } = await worldWithLaggingDecider()
      world.faults.set('a', fault)
      const third = edit('x', current, { v: 3 })
      const written = coordinator.updateDocuments(world.db, [third], {}, request())
      expect(await outcomeOf(world.during(written)))
        .to.deep.equal({ kind: 'written', revision: revisionOf(third), accepted: false })
      await world.during(coordinator.stop())
    })
  }

  it('is not answered when the replica that has the parent fails before the decider receives it', async () => {
    const { world, coordinator, current } = await worldWithLaggingDecider()
    for (const node of ['b', 'c']) {
      world.faults.set(node, { kind: 'fail', code: 'overloaded', verbs: ['openRevisions'] })
    }
    const third = edit('x', current, { v: 3 })
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [third], {}, request())))
      .to.deep.equal({ kind: 'written', revision: revisionOf(third), accepted: false })
  })

  it('is not answered when the decider cannot be told that the document was deleted', async () => {
    const { world, parent } = await worldWithDocument()
    const coordinator = world.coordinator('b')
    world.isolate('a')
    await coordinator.updateDocuments(world.db, [edit('x', parent, {}, true)], {}, request())
    world.heal()
    for (const node of ['b', 'c']) {
      world.faults.set(node, { kind: 'fail', code: 'overloaded', verbs: ['openRevisions'] })
    }
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [edit('x', null, { v: 3 })], {}, request())))
      .to.include({ kind: 'written', accepted: false })
  })

  it('is unknown unless a majority of the replicas says that it lacks the parent', async () => {
    const { world } = await worldWithDocument()
    const coordinator = world.coordinator('a')
    const stale = edit('x', '2-ff', {})
    world.faults.set('b', { kind: 'fail', code: 'unreachable', verbs: ['openDocument'] })
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [stale], {}, request())))
      .to.deep.equal({ kind: 'conflict' })
    // The links are still open, as in the first seconds of a partition.
    world.faults.set('c', { kind: 'fail', code: 'unreachable', verbs: ['openDocument'] })
    expect(await outcomeOf(coordinator.updateDocuments(world.db, [stale], {}, request()))).to.equal(503)
  })
})
