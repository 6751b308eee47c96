import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { DesignChangeNotices } from '../../src/design-documents/design-change-notices.ts'
import { edit, ReplicaWorld, request } from '../replica-world.ts'
import type { WorldOptions } from '../replica-world.ts'

const id = '_design/d'
/** Node d has no replica. */
const oneWithout = { nodes: ['a', 'b', 'c', 'd'], n: 3 }

/** Coordinators on all nodes of a world, with the notices between them. */
class DesignWorld extends ReplicaWorld {
  readonly coordinators = new Map<string, CoordinatorNode>()
  /** While true, notices do not arrive. */
  noticesLost = false
  sent = 0
  /** While true, only the notices that the answer to a write waits for are sent. */
  announcedOnly = false

  constructor(options: WorldOptions = {}) {
    super(options)
    for (const node of this.nodes) {
      const notices = new DesignChangeNotices({
        control: { node, connectedNodes: () => this.nodes.filter(other => this.isConnected(node, other)) },
        local: { onCommit: listener => this.onCommit(node, (...change) => {
          if (!this.announcedOnly) listener(...change)
        }) },
        peers: { control: target => ({ designChanged: async incarnation => {
          this.sent++
          if (!this.noticesLost && this.isConnected(node, target)) this.on(target).designChanged(incarnation)
        } }) },
        onChange: incarnation => this.on(node).designChanged(incarnation),
      })
      notices.start()
      this.coordinators.set(node, this.coordinator(
        node, { onDesignWritten: incarnation => notices.announce(incarnation) },
      ))
    }
  }

  on(node: string): CoordinatorNode { return this.coordinators.get(node)! }

  async write(node: string, parent: string | null, value: object, deleted = false): Promise<string> {
    const [outcome] = await this.during(
      this.on(node).updateDocuments(this.db, [edit(id, parent, value, deleted)], {}, request()),
    )
    if (outcome?.kind !== 'written') throw new Error(JSON.stringify(outcome))
    return outcome.revision
  }

  async revisionOn(node: string): Promise<string | undefined> {
    return (await this.during(this.on(node).designDocument(this.db, id)))?.revision
  }

  scans(): number { return this.calls.filter(({ verb }) => verb === 'scanDocuments').length }

  outcomes(node: string, outcome: string): Promise<number> {
    return this.metrics.get(node)!.value('sectional_design_document_readings_total', outcome)
  }
}

describe('the cache of design documents', () => {
  it('of all nodes is told of a design document that is written together with other documents', async () => {
    const world = new DesignWorld()
    world.announcedOnly = true
    expect(await world.revisionOn('b')).to.equal(undefined)
    const writes = [edit('plain', null, {}), edit(id, null, { language: 'javascript', views: {} })]
    const [, outcome] = await world.during(world.on('a').updateDocuments(world.db, writes, {}, request()))
    expect(await world.revisionOn('b')).to.equal(outcome?.kind === 'written' ? outcome.revision : 'nothing')
    await Promise.all(world.nodes.map(node => world.on(node).stop()))
  })

  it('reads a database once for all requests that come meanwhile, and not again for five seconds', async () => {
    const world = new DesignWorld({ q: 2 })
    const revision = await world.write('a', null, { language: 'javascript', views: {} })
    world.calls.length = 0
    const found = await world.during(Promise.all(
      [1, 2, 3].map(() => world.on('a').designDocument(world.db, id)),
    ))
    expect(found.map(document => document?.revision)).to.deep.equal([revision, revision, revision])
    expect(found[0]!.members).to.deep.equal({ language: 'javascript', views: {} })
    expect(world.scans(), 'two of three replicas of two shards').to.equal(4)
    world.calls.length = 0
    await world.clock.advance(3_900)
    expect(await world.on('a').designDocument(world.db, id)).to.equal(found[0])
    expect(await world.on('a').designDocument(world.db, '_design/none')).to.equal(null)
    expect(world.calls).to.deep.equal([])
  })

  it('opens only the documents that have changed', async () => {
    const world = new DesignWorld()
    await world.write('a', null, { n: 1 })
    const first = await world.during(world.on('a').designDocument(world.db, id))
    await world.during(world.on('a').updateDocuments(world.db, [edit('_design/e', null, {})], {}, request()))
    world.calls.length = 0
    expect(await world.during(world.on('a').designDocument(world.db, id))).to.equal(first)
    expect(world.calls.filter(({ verb }) => verb === 'openDocument')).to.have.length(2)
  })

  it('has a design document on its own node as soon as the write is answered, without a notice', async () => {
    const world = new DesignWorld()
    world.noticesLost = true
    let revision: string | null = null
    for (let n = 1; n <= 3; n++) {
      revision = await world.write('c', revision, { n })
      expect(await world.revisionOn('c')).to.equal(revision)
    }
    await world.write('c', revision, {}, true)
    expect(await world.revisionOn('c')).to.equal(undefined)
  })

  it('does not take a reading that began before the write for one after it', async () => {
    const world = new DesignWorld()
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('b')).to.equal(first)
    world.jitterTurns = 20
    for (let n = 2, revision = first; n <= 30; n++) {
      const reading = world.on('b').designDocument(world.db, id)
      world.on('b').designChanged(world.db.incarnation)
      const again = world.on('b').designDocument(world.db, id)
      revision = await world.write('b', revision, { n })
      expect(await world.revisionOn('b')).to.equal(revision)
      await world.during(Promise.all([reading, again]))
    }
  })

  it('has a design document that another node wrote when the notice arrives', async () => {
    const world = new DesignWorld(oneWithout)
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('d')).to.equal(first)
    const second = await world.write('a', first, { n: 2 })
    expect(await world.revisionOn('d')).to.equal(second)
    expect(world.clock.monotonic()).to.be.below(100)
  })

  it('has a design document on every node when its write is answered', async () => {
    const world = new DesignWorld(oneWithout)
    world.announcedOnly = true
    const first = await world.write('a', null, { n: 1 })
    for (const node of world.nodes) expect(await world.revisionOn(node)).to.equal(first)
    const second = await world.write('a', first, { n: 2 })
    for (const node of world.nodes) expect(await world.revisionOn(node), node).to.equal(second)
  })

  it('sends notices for design documents only', async () => {
    const world = new DesignWorld()
    await world.during(world.on('a').updateDocuments(world.db, [edit('x', null, {})], {}, request()))
    expect(world.sent).to.equal(0)
    await world.write('a', null, {})
    expect(world.sent, 'three replicas and the coordinator, to two nodes each').to.equal(8)
  })

  it('learns of a design document within five seconds when all notices are lost', async () => {
    const world = new DesignWorld(oneWithout)
    world.noticesLost = true
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('d')).to.equal(first)
    const second = await world.write('a', first, { n: 2 })
    expect(await world.revisionOn('d'), 'the notice was lost').to.equal(first)
    await world.clock.advance(5_000)
    expect(await world.revisionOn('d')).to.equal(second)
  })

  it('compares entries in the background before they are five seconds old', async () => {
    const world = new DesignWorld(oneWithout)
    world.noticesLost = true
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('d')).to.equal(first)
    const second = await world.write('a', first, { n: 2 })
    await world.clock.advance(4_000)
    expect(await world.on('d').designDocument(world.db, id)).to.include({ revision: first })
    await world.clock.advance(10)
    expect(await world.on('d').designDocument(world.db, id)).to.include({ revision: second })
  })

  it('keeps what it knows while it is cut off, and says so in the metrics', async () => {
    const world = new DesignWorld(oneWithout)
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('d')).to.equal(first)
    world.isolate('d')
    await world.write('a', first, { n: 2 })
    await world.clock.advance(6_000)
    expect(await world.revisionOn('d'), 'no replica can be reached').to.equal(first)
    expect(await world.outcomes('d', 'failed')).to.equal(1)
  })

  it('is not replaced by the older revision of a replica that lags when no majority answers', async () => {
    const world = new DesignWorld()
    world.isolate('c')
    const first = await world.write('a', null, { n: 1 })
    const second = await world.write('a', first, { n: 2 })
    world.heal()
    expect(await world.revisionOn('c'), 'read from two replicas').to.equal(second)
    world.isolate('c')
    const other = edit('_design/e', null, {})
    await world.during(world.on('c').updateDocuments(world.db, [other], {}, request()))
    expect(await world.revisionOn('c')).to.equal(second)
    expect(await world.during(world.on('c').designDocument(world.db, '_design/e'))).to.include({ id: '_design/e' })
  })

  it('is kept when no majority answers, and the replica that does has never had the document', async () => {
    const world = new DesignWorld()
    world.faults.set('c', { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] })
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('c')).to.equal(first)
    world.isolate('c')
    world.faults.delete('c')
    const other = edit('_design/e', null, {})
    await world.during(world.on('c').updateDocuments(world.db, [other], {}, request()))
    expect(await world.revisionOn('c')).to.equal(first)
    expect((await world.leavesOf(id)).c).to.deep.equal([])
  })

  it('has the newest revision when one of two replicas that answer has missed a change or the deletion', async () => {
    for (const deleted of [false, true]) {
      const world = new DesignWorld()
      world.noticesLost = true
      const first = await world.write('a', null, { n: 1 })
      expect(await world.revisionOn('b')).to.equal(first)
      world.faults.set('b', { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] })
      const second = await world.write('a', first, { n: 2 }, deleted)
      await world.clock.advance(5_000)
      expect(await world.revisionOn('b')).to.equal(deleted ? undefined : second)
    }
  })

  it('answers 503 with Retry-After without an entry when no replica of a shard can be reached', async () => {
    const world = new DesignWorld(oneWithout)
    await world.write('a', null, {})
    world.isolate('d')
    const error = await world.during(world.on('d').designDocument(world.db, id)).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ApiError).and.include({ status: 503 })
    expect((error as ApiError).headers).to.have.property('Retry-After')
    world.heal()
    expect(await world.revisionOn('d'), 'the next request tries again').to.be.a('string')
  })

  it('does not make requests wait longer than a second for a comparison with silent replicas', async () => {
    const world = new DesignWorld()
    const first = await world.write('a', null, { n: 1 })
    expect(await world.revisionOn('a')).to.equal(first)
    for (const node of ['b', 'c']) world.faults.set(node, { kind: 'hang' })
    await world.clock.advance(5_000)
    const before = world.clock.monotonic()
    expect(await world.revisionOn('a')).to.equal(first)
    expect(world.clock.monotonic() - before).to.be.within(1_000, 1_020)
    expect(await world.on('a').designDocument(world.db, id), 'without a wait').to.include({ revision: first })
  })

  it('refuses design documents that need more memory than the limit', async () => {
    const world = new DesignWorld({ nodes: ['a'], designDocuments: { bytesMax: () => 4_000 } })
    const error = (): Promise<unknown> => world.on('a').designDocument(world.db, id).catch((thrown: unknown) => thrown)
    const first = await world.write('a', null, { filler: 'x'.repeat(2_000) })
    expect(await error()).to.be.instanceOf(ApiError).and.include({
      status: 503,
      reason: `The design documents of ${world.db.name} have more than 1000 bytes, the part of ddoc_cache/max_size `
        + 'that they may have. Raise the option, or delete design documents.',
    })
    await world.write('a', first, { filler: '' })
    expect(await world.revisionOn('a')).to.be.a('string')
  })

  it('counts towards the limit also the design documents that it has read before', async () => {
    const world = new DesignWorld({ nodes: ['a'], designDocuments: { bytesMax: () => 4_000 } })
    const revision = await world.write('a', null, { filler: 'x'.repeat(600) })
    expect(await world.revisionOn('a')).to.equal(revision)
    const second = edit('_design/e', null, { filler: 'x'.repeat(600) })
    await world.during(world.on('a').updateDocuments(world.db, [second], {}, request()))
    const error: unknown = await world.on('a').designDocument(world.db, id).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ApiError).and.include({ status: 503 })
  })
})
