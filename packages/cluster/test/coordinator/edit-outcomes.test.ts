import { ReplicaError } from '@sectional/core'
import type { DocumentRevision, UpdateDocumentsRequest } from '@sectional/core'
import { expect } from 'chai'
import type { Coordinator, WriteOutcome } from '../../src/contracts/coordinator.ts'
import { outcomeOf, revisionOf, worldWithDocument } from '../edit-world.ts'
import type { Edit } from '../edit-world.ts'
import { bytes, edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'
import type { Fault } from '../replica-world.ts'

describe('the outcome of an edit', () => {
  it('is success when the next replica already has this attempt, however it arrived there', async () => {
    const { world, parent } = await worldWithDocument()
    const claim = edit('x', parent, { claimed: true })
    const [a, b] = [world.store('a'), world.store('b')]
    const decide = a.updateDocuments.bind(a)
    a.updateDocuments = async (decided, call) => {
      const reply = await decide(decided, call)
      // Anti-entropy brings the lost decision to b before b is asked.
      const [leaf] = (await a.openRevisions([{ id: 'x', revisions: 'leaves', latest: false }], plainCall))[0]!
      if (leaf?.kind === 'found') await b.storeRevisions({ revisions: [leaf.revision], revsLimit: 1000 }, plainCall)
      return reply
    }
    world.faults.set('a', { kind: 'lose-reply', verbs: ['updateDocuments'] })
    const [outcome] = await world.coordinator('c').updateDocuments(world.db, [claim], { w: 3 }, request())
    expect(outcome).to.deep.equal({ kind: 'written', revision: revisionOf(claim), accepted: false })
    for (const leaves of Object.values(await world.leavesOf('x'))) expect(leaves).to.have.length(1)
  })

  it('is success for one of two clients with equal edits, when the decider takes both without an answer', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'lose-reply', verbs: ['updateDocuments'] })
    const outcomes = await Promise.all(['b', 'c'].map(node => outcomeOf(
      world.coordinator(node).updateDocuments(world.db, [edit('x', parent, { claimed: true })], {}, request()))))
    expect(outcomes.filter(outcome => typeof outcome === 'object' && outcome.kind === 'written')).to.have.length(1)
    expect(outcomes.filter(outcome => outcome === 503)).to.have.length(1)
  })

  it('is unknown, and no conflict, while the first decider may have made the edit', async () => {
    const { world, parent } = await worldWithDocument()
    world.cut('a', 'c')
    world.faults.set('a', { kind: 'lose-reply', verbs: ['updateDocuments', 'openDocument', 'storeRevisions'] })
    const mine = edit('x', parent, { by: 'b' })
    const other = edit('x', parent, { by: 'c' })
    // Node a decides the edit of b, but its answers are lost. Meanwhile b's replica decides the edit of c.
    const store = world.store('a')
    const decide = store.updateDocuments.bind(store)
    let theirs: WriteOutcome | number | undefined
    store.updateDocuments = async (decided, call) => {
      const reply = await decide(decided, call)
      theirs = await outcomeOf(world.coordinator('c').updateDocuments(world.db, [other], { w: 2 }, request()))
      return reply
    }
    const outcome = await outcomeOf(
      world.during(world.coordinator('b').updateDocuments(world.db, [mine], {}, request())),
    )
    expect(theirs).to.include({ kind: 'written', revision: revisionOf(other) })
    expect(outcome).to.equal(503)
    expect((await world.leavesOf('x')).a).to.deep.equal([{ revision: revisionOf(mine), deleted: false }])
  })

  it('is unknown, and no conflict, while the first decider is silent and may still make the edit', async () => {
    const { world, parent } = await worldWithDocument()
    world.isolate('a')
    const coordinator = world.coordinator('b')
    const theirs = edit('x', parent, { by: 'another client' })
    await coordinator.updateDocuments(world.db, [theirs], { w: 2 }, request())
    world.heal()
    world.faults.set('a', { kind: 'hang' })
    const mine = edit('x', parent, { by: 'me' })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [mine], {}, request())))).to.equal(503)
    await world.during(coordinator.stop())
  })

  for (const code of ['overloaded', 'not_hosted'] as const) {
    it(`stays a certain conflict when the first decider did nothing (${code})`, async () => {
      const { world, parent } = await worldWithDocument()
      world.faults.set('a', { kind: 'fail', code, verbs: ['updateDocuments'] })
      const coordinator = world.coordinator('b')
      const first = await outcomeOf(coordinator.updateDocuments(world.db, [edit('x', parent, { v: 1 })], {}, request()))
      expect(first).to.include({ kind: 'written' })
      const second = edit('x', parent, { v: 2 })
      expect(await outcomeOf(coordinator.updateDocuments(world.db, [second], {}, request()))).to.deep.equal({
        kind: 'conflict',
      })
    })
  }

  for (const created of [true, false]) {
    const before = created ? 'a new document' : 'a deleted document'
    it(`is not made again after another client has deleted the document (${before})`, async () => {
      const { world, parent } = await worldWithDocument()
      const coordinator = world.coordinator('c')
      const id = created ? 'y' : 'x'
      const update = (change: Edit) =>
        outcomeOf(world.during(coordinator.updateDocuments(world.db, [change], { w: 2 }, request())))
      if (!created) await update(edit('x', parent, {}, true))
      const [a, b] = [world.store('a'), world.store('b')]
      // Node a is paused when it has received the call, and decides the edit when it runs again.
      world.faults.set('a', { kind: 'hang' })
      const calls: UpdateDocumentsRequest[] = []
      const decide = b.updateDocuments.bind(b)
      b.updateDocuments = (decided, call) => {
        calls.push(decided)
        return decide(decided, call)
      }
      await update(edit(id, null, { v: 1 }))
      const [made] = (await world.leavesOf(id)).b!
      if (made !== undefined && !made.deleted) await update(edit(id, made.revision, {}, true))
      const [leaf] = (await b.openRevisions([{ id, revisions: 'leaves', latest: false }], plainCall))[0]!
      if (leaf?.kind === 'found') await a.storeRevisions({ revisions: [leaf.revision], revsLimit: 1000 }, plainCall)
      expect(calls[0]!.edits[0]).to.include({ id, parent: null })
      await a.updateDocuments(calls[0]!, plainCall)
      expect((await world.leavesOf(id)).a!.map(({ deleted }) => deleted)).to.deep.equal([true])
    })
  }

  it('is unknown for a deleted document that the silent first decider may have restored before', async () => {
    const { world, parent } = await worldWithDocument()
    const coordinator = world.coordinator('c')
    await coordinator.updateDocuments(world.db, [edit('x', parent, {}, true)], { w: 3 }, request())
    world.faults.set('a', { kind: 'hang' })
    const create = edit('x', null, { v: 1 })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [create], {}, request())))).to.equal(503)
    expect((await world.leavesOf('x')).b!.map(({ deleted }) => deleted)).to.deep.equal([true])
    await world.during(coordinator.stop())
  })

  it('does not restore a document that was deleted again, when the first decider answers while the next one is asked',
    async () => {
      const { world, parent } = await worldWithDocument()
      const coordinator = world.coordinator('c')
      await coordinator.updateDocuments(world.db, [edit('x', parent, {}, true)], { w: 3 }, request())
      const [a, b] = [world.store('a'), world.store('b')]
      const asked = Promise.withResolvers<void>()
      // Node a makes the edit and is silent until b is asked, which knows by then that another client has deleted it.
      world.faults.set('a', { kind: 'hang', verbs: ['diffRevisions'] })
      const [decideOnA, decideOnB] = [a, b].map(store => store.updateDocuments.bind(store))
      a.updateDocuments = async (decided, call) => {
        const reply = await decideOnA!(decided, call)
        if (reply.kind === 'decided' && reply.outcomes[0]!.kind === 'updated') await asked.promise
        return reply
      }
      b.updateDocuments = async (decided, call) => {
        b.updateDocuments = decideOnB!
        const [made] = (await a.openRevisions([{ id: 'x', revisions: 'leaves', latest: false }], plainCall))[0]!
        if (made?.kind !== 'found') throw new Error('node a has not made the edit')
        const { start, ids } = made.revision.path
        const deletion = { id: 'x', path: { start: start + 1, ids: ['ff', ...ids] }, deleted: true, body: bytes({}) }
        for (const store of [a, b]) await store.storeRevisions({ revisions: [deletion], revsLimit: 1000 }, plainCall)
        const reply = await decideOnB!(decided, call)
        asked.resolve()
        await new Promise(resolve => { setImmediate(resolve) })
        return reply
      }
      const create = edit('x', null, { v: 1 })
      const outcome = await outcomeOf(world.during(coordinator.updateDocuments(world.db, [create], {}, request())))
      await world.during(coordinator.stop())
      expect(outcome).to.include({ kind: 'written' })
      expect((await world.leavesOf('x')).b).to.deep.equal([{ revision: '4-ff', deleted: true }])
    })

  it('is returned for each document of a bulk request', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'lose-reply', verbs: ['updateDocuments'] })
    const late = edit('x', parent, { v: 1 })
    await world.store('b').storeRevisions(
      {
        revisions: [{ id: 'x', path: { start: 2, ids: ['ff', parent.slice(2)] }, deleted: false, body: late.body }],
        revsLimit: 1000,
      },
      plainCall,
    )
    const outcomes = await world.coordinator('c').updateDocuments(world.db, [late, edit('y', null, {})], {}, request())
    expect(outcomes[0]).to.include({ kind: 'error', status: 503 })
    expect(outcomes[1]).to.include({ kind: 'written' })
  })

  it('is no conflict when its decider has made it, and stops before it can restore another document', async () => {
    const { world, parent } = await worldWithDocument()
    const coordinator = world.coordinator('b')
    await coordinator.updateDocuments(world.db, [edit('x', parent, {}, true)], { w: 3 }, request())
    const a = world.store('a')
    const decide = a.updateDocuments.bind(a)
    let theirs: WriteOutcome | number | undefined
    // When a has made y, and before it is asked to restore x, another client makes y on the other two nodes.
    a.updateDocuments = async (decided, call) => {
      const reply = await decide(decided, call)
      theirs = await outcomeOf(
        world.coordinator('c').updateDocuments(world.db, [edit('y', null, { by: 'another client' })], {}, request()),
      )
      return reply
    }
    world.faults.set('a', { kind: 'stop', left: 1 })
    const edits = [edit('y', null, { by: 'me' }), edit('x', null, { v: 1 })]
    const outcomes = await coordinator.updateDocuments(world.db, edits, {}, request())
    expect(theirs).to.include({ kind: 'written' })
    expect((await world.leavesOf('y')).a).to.deep.equal([{ revision: revisionOf(edits[0]!), deleted: false }])
    expect(outcomes[0]).to.include({ kind: 'error', status: 503 })
    expect(outcomes[1]).to.include({ kind: 'written', accepted: false })
  })

  it('is decided after earlier edits of the same request, also when their decider stops', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'stop', left: 1 })
    const edits = [edit('x', parent, {}, true), edit('x', null, { v: 1 })]
    const outcomes = await world.coordinator('b').updateDocuments(world.db, edits, {}, request())
    for (const outcome of outcomes) expect(outcome).to.include({ kind: 'written', accepted: false })
  })

  it('is unknown when its decider may have restored it, and another client has deleted it again', async () => {
    const { world, parent } = await worldWithDocument()
    const coordinator = world.coordinator('b')
    await coordinator.updateDocuments(world.db, [edit('x', parent, {}, true)], { w: 3 }, request())
    const a = world.store('a')
    const decide = a.updateDocuments.bind(a)
    let decisions = 0
    // The first call makes y, and the second one restores x. Its answer is lost.
    a.updateDocuments = async (decided, call) => {
      const reply = await decide(decided, call)
      if (++decisions === 1) return reply
      const [made] = (await a.openRevisions([{ id: 'x', revisions: 'leaves', latest: false }], plainCall))[0]!
      if (made?.kind !== 'found') throw new Error('x was not restored')
      const { start, ids } = made.revision.path
      const deletion = { id: 'x', path: { start: start + 1, ids: ['ff', ...ids] }, deleted: true, body: bytes({}) }
      await world.store('b').storeRevisions({ revisions: [deletion], revsLimit: 1000 }, plainCall)
      throw new ReplicaError('unreachable', 'the link broke during the call')
    }
    const edits = [edit('y', null, { v: 1 }), edit('x', null, { v: 1 })]
    const outcomes = await coordinator.updateDocuments(world.db, edits, {}, request())
    expect(decisions).to.equal(2)
    expect(outcomes[0]).to.include({ kind: 'written' })
    expect(outcomes[1]).to.include({ kind: 'error', status: 503 })
    expect((await world.leavesOf('x')).b).to.deep.equal([{ revision: '4-ff', deleted: true }])
  })

  it('is success on one side only when two replicas decide different edits of one revision', async () => {
    const { world, parent } = await worldWithDocument()
    const [left, right] = [edit('x', parent, { by: 'left' }), edit('x', parent, { by: 'right' })]
    // c lacks nothing: it receives both edits, one after the other.
    world.cut('a', 'b')
    const first = await outcomeOf(world.coordinator('a').updateDocuments(world.db, [left], { w: 2 }, request()))
    expect(first).to.include({ kind: 'written', accepted: false })
    await world.store('b')
      .updateDocuments({ edits: [{ ...right, attempt: 9 }], revsLimit: 1000, force: true }, plainCall)
    const path = { start: 2, ids: [right.revisionHash, parent.slice(2)] }
    const stored = await world.store('c').storeRevisions(
      { revisions: [{ id: 'x', path, deleted: false, body: right.body, attempt: 9 }], revsLimit: 1000 }, plainCall,
    )
    expect(stored.rivals).to.deep.equal([0])
  })

  it('is unknown when a replica that stores it has another edit of the same revision', async () => {
    const { world, parent } = await worldWithDocument()
    const rival = edit('x', parent, { by: 'another decider' })
    await world.store('b')
      .updateDocuments({ edits: [{ ...rival, attempt: 9 }], revsLimit: 1000, force: true }, plainCall)
    const coordinator = world.coordinator('a')
    // The replica of b answers before the write is acknowledged, because w is 3.
    const edits = [edit('x', null, {}), edit('y', null, {}), edit('x', parent, { by: 'a' })]
    const outcomes = await coordinator.updateDocuments(world.db, edits, { w: 3 }, request())
    expect(outcomes[0]).to.deep.equal({ kind: 'conflict' })
    expect(outcomes[1]).to.include({ kind: 'written', accepted: false })
    expect(outcomes[2]).to.include({ kind: 'error', status: 503 })
  })

  it('is unknown when a replica has heard of an equal edit after the edit that replaced it', async () => {
    const { world, parent } = await worldWithDocument()
    const [first, c] = [edit('x', parent, { equal: true }), world.store('c')]
    const second = edit('x', revisionOf(first), { v: 2 })
    const store = c.storeRevisions.bind(c)
    const b = world.coordinator('b')
    let replaced: Promise<WriteOutcome | number> | undefined
    c.storeRevisions = async (stored, call) => {
      if (replaced === undefined) {
        replaced = outcomeOf(b.updateDocuments(world.db, [second], { w: 2 }, request()))
        expect(await replaced).to.include({ kind: 'written', accepted: false })
      }
      return store(stored, call)
    }
    world.isolate('a')
    expect(await outcomeOf(b.updateDocuments(world.db, [first], { w: 2 }, request()))).to.include(
      { kind: 'written', accepted: false },
    )
    world.heal()
    world.cut('a', 'b')
    const again = outcomeOf(world.coordinator('a').updateDocuments(world.db, [first], { w: 2 }, request()))
    expect(await again).to.equal(503)
  })

  it('is unknown when the same request replaces an equal edit of another client', async () => {
    const { world, parent } = await worldWithDocument()
    const first = edit('x', parent, { equal: true })
    world.isolate('a')
    await world.coordinator('b').updateDocuments(world.db, [first], { w: 2 }, request())
    world.heal()
    const edits = [edit('x', revisionOf(first), { v: 2 }), first]
    const outcomes = await world.coordinator('a').updateDocuments(world.db, edits, { w: 2 }, request())
    expect(outcomes[0]).to.include({ kind: 'written', accepted: false })
    expect(outcomes[1]).to.include({ kind: 'error', status: 503 })
  })

  describe('of a node that was cut off for some seconds', () => {
    /** Returns a world in which `a` lacks the document, declines to decide, and holds the other nodes for silent. */
    async function returned(first: Edit): Promise<{ readonly world: ReplicaWorld; readonly a: Coordinator }> {
      const world = new ReplicaWorld()
      world.isolate('a')
      await world.coordinator('b').updateDocuments(world.db, [first], { w: 2 }, request())
      return replaced(world, first)
    }

    async function replaced(
      world: ReplicaWorld, first: Edit,
    ): Promise<{ readonly world: ReplicaWorld; readonly a: Coordinator }> {
      const second = edit('x', revisionOf(first), { v: 2 })
      await world.coordinator('b').updateDocuments(world.db, [second], { w: 2 }, request())
      world.heal()
      for (const node of ['b', 'c']) world.faults.set(node, { kind: 'hang' })
      const a = world.coordinator('a')
      await world.during(a.openDocument(world.db, 'other', {}, request()))
      world.faults.clear()
      world.store('a').catchingUp = true
      return { world, a }
    }

    it('is a conflict when it makes a revision again that a majority has replaced', async () => {
      const first = edit('x', null, { equal: true })
      const { world, a } = await returned(first)
      expect(await outcomeOf(a.updateDocuments(world.db, [first], { w: 2 }, request()))).to.deep.equal(
        { kind: 'conflict' },
      )
    })

    const unreadable: Fault = { kind: 'fail', code: 'overloaded', verbs: ['openDocument'] }

    it('is unknown when a majority that could not be read before has replaced an equal edit', async () => {
      const first = edit('x', null, { equal: true })
      const { world, a } = await returned(first)
      for (const node of ['b', 'c']) world.faults.set(node, unreadable)
      expect(await outcomeOf(a.updateDocuments(world.db, [first], { w: 2 }, request()))).to.equal(503)
    })

    it('is accepted, but no success, when such a majority does not know who made the equal edit', async () => {
      const first = edit('x', null, { equal: true })
      const world = new ReplicaWorld()
      world.isolate('a')
      const path = { start: 1, ids: [first.revisionHash] } as const
      const revision: DocumentRevision = { id: 'x', path, deleted: false, body: first.body }
      for (const node of ['b', 'c'] as const) {
        await world.store(node).storeRevisions({ revisions: [revision], revsLimit: 1000 }, plainCall)
      }
      const { a } = await replaced(world, first)
      for (const node of ['b', 'c']) world.faults.set(node, unreadable)
      expect(await outcomeOf(a.updateDocuments(world.db, [first], { w: 2 }, request()))).to.deep.include(
        { kind: 'written', accepted: true },
      )
    })
  })
})

describe('a silent node', () => {
  it('delays neither the first decision nor later ones by a second', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'hang' })
    const coordinator = world.coordinator('b')
    const startedMs = world.clock.monotonic()
    const first = edit('x', parent, { v: 1 })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [first], {}, request())))).to.include({
      kind: 'written', accepted: false,
    })
    expect(world.clock.monotonic() - startedMs).to.be.within(700, 1000)
    const nextMs = world.clock.monotonic()
    const second = edit('x', revisionOf(first), { v: 2 })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [second], {}, request())))).to.include({
      kind: 'written',
    })
    expect(world.clock.monotonic()).to.equal(nextMs)
    await world.during(coordinator.stop())
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('is distinguished from a node with a slow disk, which decides itself', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'hang', verbs: ['updateDocuments'] })
    const startedMs = world.clock.monotonic()
    const coordinator = world.coordinator('b')
    const change = edit('x', parent, { v: 1 })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [change], {}, request())))).to.include({
      kind: 'written',
    })
    expect(world.clock.monotonic() - startedMs).to.be.at.least(5000)
    await world.during(coordinator.stop())
  })

  it('is not waited for by a write that needs its disk', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('c', { kind: 'hang' })
    const startedMs = world.clock.monotonic()
    const coordinator = world.coordinator('a')
    const outcome = await outcomeOf(
      world.during(coordinator.updateDocuments(world.db, [edit('x', parent, { v: 1 })], { w: 3 }, request())),
    )
    expect(outcome).to.include({ kind: 'written', accepted: true })
    expect(world.clock.monotonic() - startedMs).to.be.within(700, 1000)
    await world.during(coordinator.stop())
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('still makes the edit in time when no other replica can', async () => {
    const { world, parent } = await worldWithDocument()
    world.faults.set('a', { kind: 'delay', ms: 3000, verbs: ['updateDocuments', 'diffRevisions'] })
    for (const node of ['b', 'c']) world.faults.set(node, { kind: 'fail', code: 'storage', verbs: ['updateDocuments'] })
    const coordinator = world.coordinator('b')
    const change = edit('x', parent, { v: 1 })
    expect(await outcomeOf(world.during(coordinator.updateDocuments(world.db, [change], {}, request())))).to.include({
      kind: 'written',
    })
    await world.during(coordinator.stop())
  })
})
