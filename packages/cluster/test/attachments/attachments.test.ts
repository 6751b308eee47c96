import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { ApiError, attachmentDigests, revisionHash, type AttachmentRecord } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { expect } from 'chai'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import { compareDigests } from '../../src/anti-entropy/digest-compare.ts'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import type { DocumentWrite } from '../../src/contracts/coordinator.ts'
import { bytes, plainCall, ReplicaWorld, request } from '../replica-world.ts'

const content = Buffer.alloc(400_000, 'content of an attachment ')
const hash = createHash('sha256').update(content).digest('hex')
const record: AttachmentRecord = {
  name: 'f', contentType: 'image/x', revpos: 1, digest: createHash('md5').update(content).digest('base64'), blob: hash,
  length: content.length, encoding: 'identity', storedLength: content.length,
}

async function* pieces(whole: Uint8Array, size = 50_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size)
}

function write(id: string, attachments: readonly AttachmentRecord[] = [record]): DocumentWrite {
  const body = bytes({})
  return {
    id, parent: null, deleted: false, body, attachments,
    revisionHash: revisionHash({ deleted: false, parent: null, body, attachments: attachmentDigests(attachments) }),
  }
}

function read(world: ReplicaWorld, coordinator: CoordinatorNode, id = 'x', attachment = record): Promise<Buffer> {
  return all(coordinator.readBlob(world.db, id, attachment, null, request()))
}

async function all(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts)
}

async function holders(world: ReplicaWorld): Promise<string[]> {
  const found = await Promise.all(
    world.nodes.map(async node => (await world.store(node).blobs.hasBlobs([hash], plainCall))[0] ? [node] : []),
  )
  return found.flat()
}

describe('content of attachments', () => {
  it('goes to every replica at once, and is read back through any node', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    expect(await coordinator.writeBlob(world.db, 'x', pieces(content), {}, request())).to.deep.equal({
      hash, length: content.length,
    })
    const [outcome] = await coordinator.updateDocuments(world.db, [write('x')], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: false })
    await coordinator.stop()
    expect(await holders(world)).to.deep.equal(['a', 'b', 'c'])
    for (const node of world.nodes) {
      const opened = await world.coordinator(node).openDocument(world.db, 'x', {}, request())
      expect(opened?.attachments).to.deep.equal([record])
      expect((await read(world, world.coordinator(node))).equals(content)).to.equal(true)
    }
  })

  it('abandons a silent replica within a second, also when w needs its disk', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'] })
    world.faults.set('b', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    const large = Buffer.alloc(1_000_000, 'x')
    const written = await world.during(coordinator.writeBlob(world.db, 'x', pieces(large), {}, request()))
    expect(written.length).to.equal(large.length)
    await world.during(coordinator.keepBlobs(world.db, 'x', [hash], request()))
    expect(world.clock.monotonic()).to.be.below(1000)
    world.faults.clear()
    await world.during(coordinator.stop())
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('waits for w replicas, and for no more', async () => {
    const world = new ReplicaWorld()
    world.faults.set('c', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    await coordinator.writeBlob(world.db, 'x', pieces(content.subarray(0, 1000)), {}, request())
    expect(world.clock.monotonic()).to.equal(0)
    await world.during(coordinator.stop())
  })

  it('leaves out a replica that accepts nothing', async () => {
    const world = new ReplicaWorld()
    world.faults.set('c', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    await world.during(coordinator.writeBlob(world.db, 'x', pieces(content), {}, request()))
    world.faults.clear()
    const [outcome] = await coordinator.updateDocuments(world.db, [write('x')], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: false })
    await world.during(coordinator.stop())
    expect(await holders(world)).to.deep.equal(['a', 'b', 'c'])
  })

  it('leaves nothing behind when the client goes away', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    const gone = new Error('gone')
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield content
      throw gone
    }
    const failure = await coordinator.writeBlob(world.db, 'x', broken(), {}, request()).catch((error: unknown) => error)
    expect(failure).to.equal(gone)
    expect(await holders(world)).to.deep.equal([])
    await coordinator.stop()
  })

  it('fails when no replica can keep it', async () => {
    const world = new ReplicaWorld()
    for (const node of world.nodes) world.faults.set(node, { kind: 'fail', code: 'storage' })
    const failure = await world.coordinator('a').writeBlob(world.db, 'x', pieces(content), {}, request())
      .catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(ApiError)
    expect((failure as ApiError).error).to.equal('insufficient_storage')
  })

  it('is copied to the decider and to other replicas that lack it', async () => {
    const world = new ReplicaWorld()
    await world.store('c').blobs.writeBlob(pieces(content), plainCall)
    const coordinator = world.coordinator('a')
    const [outcome] = await coordinator.updateDocuments(world.db, [write('x')], { w: 3 }, request())
    expect(outcome).to.include({ kind: 'written', accepted: false })
    expect(await holders(world)).to.deep.equal(['a', 'b', 'c'])
    await coordinator.stop()
  })

  it('is copied to a replica that a read brings up to date', async () => {
    const world = new ReplicaWorld()
    world.isolate('c')
    const writer = world.coordinator('a')
    await writer.writeBlob(world.db, 'x', pieces(content), {}, request())
    await writer.updateDocuments(world.db, [write('x')], { w: 2 }, request())
    world.heal()
    const reader = world.coordinator('c')
    await reader.openDocument(world.db, 'x', { r: 3 }, request())
    await reader.stop()
    expect(await holders(world)).to.deep.equal(['a', 'b', 'c'])
    const leaves = await world.leavesOf('x')
    expect(leaves.c).to.have.length(1)
    expect(leaves.c).to.deep.equal(leaves.a)
  })

  it('that no replica has prevents the write of its document', async () => {
    const world = new ReplicaWorld()
    const failure = await world.coordinator('a').updateDocuments(world.db, [write('x')], {}, request())
      .catch((error: unknown) => error)
    expect((failure as ApiError).reason).to.match(/content of an attachment/)
    expect(await world.coordinator('a').openDocument(world.db, 'x', {}, request())).to.equal(null)
  })

  it('that is only on a replica that is away is asked for again later, and not called lost', async () => {
    const faults: ((world: ReplicaWorld) => void)[] = [
      world => world.faults.set('c', { kind: 'fail', code: 'unreachable' }),
      world => world.faults.set('c', { kind: 'hang' }),
      world => world.cut('a', 'c'),
    ]
    for (const fault of faults) {
      const world = new ReplicaWorld()
      await world.store('c').blobs.writeBlob(pieces(content), plainCall)
      fault(world)
      const coordinator = world.coordinator('a')
      const refused = coordinator.updateDocuments(world.db, [write('x')], {}, request())
        .catch((error: unknown) => error)
      expect(await world.during(refused)).to.include({ error: 'service unavailable' })
      const unread = read(world, coordinator).catch((error: unknown) => error)
      expect(await world.during(unread)).to.include({ error: 'service unavailable' })
      await world.during(coordinator.stop())
    }
  })

  for (const how of ['changed', 'lost'] as const) {
    it(`that is ${how} on one disk is served from another, and repaired`, async () => {
      const world = new ReplicaWorld()
      const coordinator = world.coordinator('a')
      await coordinator.writeBlob(world.db, 'x', pieces(content), { w: 3 }, request())
      world.store('a').blobs.damageBlob(hash, how)
      expect((await read(world, coordinator)).equals(content)).to.equal(true)
      await coordinator.stop()
      world.calls.length = 0
      const stored = await all(world.store('a').blobs.readBlob({ hash, span: null }, plainCall))
      expect(stored.equals(content)).to.equal(true)
    })
  }

  it('that is damaged on two disks is repaired on both at once', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    await coordinator.writeBlob(world.db, 'x', pieces(content), { w: 3 }, request())
    for (const node of ['a', 'b']) world.store(node).blobs.damageBlob(hash, 'lost')
    expect((await read(world, coordinator)).equals(content)).to.equal(true)
    await coordinator.stop()
    expect(await holders(world)).to.deep.equal(['a', 'b', 'c'])
  })

  it('that is damaged again and again is repaired each time', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    await coordinator.writeBlob(world.db, 'x', pieces(content), { w: 3 }, request())
    const { blobs } = world.store('a')
    const isSound = () => all(blobs.readBlob({ hash, span: null }, plainCall))
      .then(stored => stored.equals(content), () => false)
    for (let time = 1; time <= 6; time++) {
      blobs.damageBlob(hash, 'changed')
      expect((await read(world, coordinator)).equals(content)).to.equal(true)
      for (let turn = 0; turn < 1000 && !await isSound(); turn++) await setImmediate()
      expect(await isSound(), `damage ${time}`).to.equal(true)
    }
    await coordinator.stop()
  })

  for (const [what, span] of [
    ['all of it', null], ['a part of it', { start: 10, end: content.length - 10 }],
  ] as const) {
    it(`that is damaged in the middle comes from another disk from there on, when ${what} is read`, async () => {
      const world = new ReplicaWorld()
      const coordinator = world.coordinator('a')
      await coordinator.writeBlob(world.db, 'x', pieces(content), { w: 3 }, request())
      world.store('a').blobs.damageBlob(hash, 'changed', content.length >> 1)
      const got = await all(coordinator.readBlob(world.db, 'x', record, span, request()))
      expect(got.equals(content.subarray(span?.start ?? 0, span?.end))).to.equal(true)
      await coordinator.stop()
      const stored = await all(world.store('a').blobs.readBlob({ hash, span: null }, plainCall))
      expect(stored.equals(content)).to.equal(true)
    })
  }

  it('goes on from another replica where a link broke', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c', 'd'], n: 3 })
    const coordinator = world.coordinator('d')
    await coordinator.writeBlob(world.db, 'x', pieces(content), { w: 3 }, request())
    world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
    const large = { ...record, storedLength: 2_000_000 }
    expect((await read(world, coordinator, 'x', large)).equals(content)).to.equal(true)
    await coordinator.stop()
  })

  it('reaches the shard of another document', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c'], n: 1, q: 3 })
    const coordinator = world.coordinator('a')
    await coordinator.writeBlob(world.db, 'x', pieces(content), {}, request())
    for (const id of ['p', 'q', 'r', 's', 't']) {
      await coordinator.shareBlobs(world.db, 'x', id, [hash], request())
      const outcomes = await coordinator.updateDocuments(world.db, [write(id)], {}, request())
      expect(outcomes).to.have.nested.property('[0].kind', 'written')
      expect((await read(world, coordinator, id)).equals(content)).to.equal(true)
    }
    await coordinator.stop()
  })
})

describe('anti-entropy of attachments', () => {
  const options = { batchDocumentsMax: 3, batchBytesMax: 40, checkpointRows: 4 }

  async function source(): Promise<MemoryShardReplica> {
    const replica = new MemoryShardReplica({ history: 's' })
    await replica.blobs.writeBlob(pieces(content), plainCall)
    for (const id of ['one', 'two']) await replica.updateDocuments({ edits: [write(id)], revsLimit: 10 }, plainCall)
    await replica.updateDocuments(
      { edits: [{ ...write('bare', []), attachments: undefined }], revsLimit: 10 } as never, plainCall,
    )
    return replica
  }

  it('copies content before the revisions that reference it', async () => {
    const [from, to] = [await source(), new MemoryShardReplica({ history: 't' })]
    await syncReplica({ source: from, target: to, revsLimit: 10, options, call: plainCall })
    expect((await to.openDocument({ id: 'two', body: true, tree: false }, plainCall))?.attachments).to.deep.equal([
      record,
    ])
    expect(await to.blobs.hasBlobs([hash], plainCall)).to.deep.equal([true])
  })

  it('copies all other changes when content is lost at the source, and asks for the content again later', async () => {
    const [from, to] = [await source(), new MemoryShardReplica({ history: 't' })]
    from.blobs.damageBlob(hash, 'lost')
    const pass = (): Promise<unknown> =>
      syncReplica({ source: from, target: to, revsLimit: 10, options, call: plainCall })
    expect(await pass().then(() => 'done', (error: { code: string }) => error.code)).to.equal('missing_blob')
    expect(await to.openDocument({ id: 'bare', body: false, tree: false }, plainCall)).to.not.equal(null)
    expect(await to.openDocument({ id: 'one', body: false, tree: false }, plainCall)).to.equal(null)
    await from.blobs.writeBlob(pieces(content), plainCall)
    await pass()
    expect(await to.openDocument({ id: 'one', body: false, tree: false }, plainCall)).to.not.equal(null)
  })

  it('copies content of documents that a comparison of digests found', async () => {
    const [from, to] = [await source(), new MemoryShardReplica({ history: 't' })]
    expect(await compareDigests({ first: from, second: to, revsLimit: 10, buckets: 4, call: plainCall })).to.include({
      documents: 3,
    })
    expect(await to.blobs.hasBlobs([hash], plainCall)).to.deep.equal([true])
  })
})
