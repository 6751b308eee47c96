import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import type { Leaf, ShardReplica, StoreRevisionsRequest } from '@sectional/core'
import { expect } from 'chai'
import fc from 'fast-check'
import { compareDigests } from '../../src/anti-entropy/digest-compare.ts'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import { bytes, edit, plainCall } from '../replica-world.ts'
import { WatchedReplica } from '../watched-replica.ts'

const options = { batchDocumentsMax: 3, batchBytesMax: 120, checkpointRows: 4 }
const revsLimit = 1000

function pass(source: ShardReplica, target: ShardReplica, onBehind?: () => void) {
  return syncReplica({ source, target, revsLimit, options, call: plainCall, ...(onBehind && { onBehind }) })
}

async function store(
  replica: ShardReplica, id: string, ids: readonly string[], value: unknown = {}, deleted = false,
): Promise<void> {
  await replica.storeRevisions(
    { revisions: [{ id, path: { start: ids.length, ids }, deleted, body: bytes(value) }], revsLimit }, plainCall,
  )
}

/** Returns everything of a replica that its peers should have too. */
async function contents(replica: ShardReplica): Promise<unknown> {
  const documents: unknown[] = []
  const locals: unknown[] = []
  for await (const page of replica.scanChanges({ since: 0, descending: false, body: false, locals: true }, plainCall)) {
    for (const row of page) {
      if (row.local) locals.push((await replica.openLocalDocuments([row.id], plainCall))[0])
      else {
        const opened = await replica.openRevisions([{ id: row.id, revisions: 'leaves', latest: false }], plainCall)
        documents.push({ id: row.id, leaves: row.leaves, opened: opened[0] })
      }
    }
  }
  const byId = (list: unknown[]): string[] => list.map(each => JSON.stringify(each)).sort()
  return { documents: byId(documents), locals: byId(locals) }
}

describe('one pass from a replica to another', () => {
  it('copies documents, conflicts, tombstones and local documents, and is done', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 10; i++) await store(source, `d${i}`, ['r'], { text: 'x'.repeat(i * 7) })
    await store(source, 'conflict', ['a', 'z'], {})
    await store(source, 'conflict', ['b', 'z'], {})
    await store(source, 'gone', ['b', 'a'], {}, true)
    await source.updateLocalDocument({ id: 'l', revision: 1, body: bytes({ l: 1 }), mustExist: false }, plainCall)
    const result = await pass(source, target)
    expect(await contents(target)).to.deep.equal(await contents(source))
    expect(result.sequence).to.equal((await source.upkeep.replicaInfo(plainCall)).sequence)
    expect((await target.upkeep.replicaInfo(plainCall)).seen).to.deep.equal({ s: result.sequence })
    expect(await pass(source, target)).to.deep.equal({ sequence: result.sequence, rows: 0, stored: 0 })
  })

  it('continues where the last one ended, and begins at the start when either replica lost its disk', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 5; i++) await store(source, `d${i}`, ['r'])
    await pass(source, target)
    await store(source, 'later', ['r'])
    expect(await pass(source, target)).to.include({ rows: 1, stored: 1 })
    expect(await pass(source, new MemoryShardReplica({ history: 't2' }))).to.include({ rows: 6, stored: 6 })
    const fresh = new MemoryShardReplica({ history: 's2' })
    await store(fresh, 'd0', ['r'])
    expect(await pass(fresh, target)).to.include({ rows: 1, stored: 0 })
  })

  it('sends little at a time, however large documents and local documents are', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    const large = { text: 'x'.repeat(900_000) }
    for (let i = 0; i < 4; i++) {
      await source.updateLocalDocument({ id: `l${i}`, revision: 1, body: bytes(large), mustExist: false }, plainCall)
    }
    for (let i = 0; i < 4; i++) await store(source, 'conflict', [`r${i}`], large)
    const sizes: number[] = []
    const record = (value: unknown): void => { sizes.push(JSON.stringify(value ?? null).length) }
    const sized = (replica: ShardReplica): ShardReplica =>
      new WatchedReplica({ replica: () => replica, onCall: (_verb, request) => record(request), onReply: record })
    // The bytes are written as numbers here.
    const textFactor = 10
    await pass(sized(source), sized(target))
    expect(await contents(target)).to.deep.equal(await contents(source))
    expect(Math.max(...sizes)).to.be.below(2_000_000 * textFactor)
  })

  it('copies more revisions of one document than one batch may have', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 8; i++) await store(source, 'conflict', [`r${i}`, 'z'], { i })
    const batches: number[] = []
    const watched = new WatchedReplica({ replica: () => target, onCall: (verb, request) => {
      if (verb === 'storeRevisions') batches.push((request as StoreRevisionsRequest).revisions.length)
    } })
    await syncReplica({
      source, target: watched, revsLimit, options: { ...options, batchBytesMax: 1_000_000 }, call: plainCall,
    })
    expect(await contents(target)).to.deep.equal(await contents(source))
    expect(batches).to.deep.equal([3, 3, 2])
  })

  it('records progress when nothing is missing, in large steps', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 10; i++) for (const replica of [source, target]) await store(replica, `d${i}`, ['r'])
    let writes = 0
    const counted = new WatchedReplica({
      replica: () => target, onCall: verb => { if (verb === 'storeRevisions') writes++ },
    })
    expect(await pass(source, counted)).to.include({ rows: 10, stored: 0 })
    expect((await target.upkeep.replicaInfo(plainCall)).seen).to.deep.equal({ s: 10 })
    expect(writes).to.equal(2)
  })

  it('keeps stored changes when it fails', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 9; i++) await store(source, `d${i}`, ['r'])
    let left = 2
    const breaking = new WatchedReplica({
      replica: () => target,
      onCall: verb => { if (verb === 'storeRevisions' && left-- === 0) throw new Error('broken') },
    })
    expect(await pass(source, breaking).then(() => null, (error: Error) => error.message)).to.equal('broken')
    const { seen } = await target.upkeep.replicaInfo(plainCall)
    expect(seen.s).to.be.within(1, 8)
    expect((await pass(source, target)).rows).to.equal(9 - seen.s!)
  })

  it('reports that the target lags before it copies', async () => {
    const [source, target] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    let behind = 0
    await pass(source, target, () => behind++)
    expect(behind).to.equal(0)
    await store(source, 'x', ['r'])
    await pass(source, target, () => behind++)
    await pass(source, target, () => behind++)
    expect(behind).to.equal(1)
  })

  it('makes divergent replicas equal, whatever happened to them', async () => {
    const operation = fc.record({
      replica: fc.nat(2), id: fc.constantFrom('x', 'y', 'z'),
      kind: fc.constantFrom('edit', 'edit', 'delete', 'branch', 'local', 'sync'), value: fc.nat(3), other: fc.nat(2),
    })
    await fc.assert(fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async operations => {
      let stamp = 0
      const replicas = ['a', 'b', 'c'].map(history => new MemoryShardReplica({ history, now: () => ++stamp }))
      for (const { replica: index, id, kind, value, other } of operations) {
        const replica = replicas[index]!
        if (kind === 'sync') await pass(replica, replicas[other]!)
        else if (kind === 'local') {
          await replica.updateLocalDocument(
            { id, revision: value, body: bytes({ value }), mustExist: false }, plainCall,
          )
        } else if (kind === 'branch') await store(replica, id, [`r${value}`, `p${value % 2}`], { value })
        else {
          const leaves: readonly Leaf[] =
            (await replica.openDocument({ id, body: false, tree: false }, plainCall))?.leaves ?? []
          const parent = leaves[0]?.deleted ? null : leaves[0]?.revision ?? null
          await replica.updateDocuments(
            { edits: [edit(id, parent, { value }, kind === 'delete')], revsLimit }, plainCall,
          )
        }
      }
      for (const source of [...replicas, ...replicas]) {
        for (const target of replicas) if (source !== target) await pass(source, target)
      }
      const [a, b, c] = await Promise.all(replicas.map(contents))
      expect(b).to.deep.equal(a)
      expect(c).to.deep.equal(a)
    }), { numRuns: 60 })
  })
})

describe('comparison of digests', () => {
  it('finds nothing in equal replicas', async () => {
    const [first, second] = [new MemoryShardReplica({ history: 'a' }), new MemoryShardReplica({ history: 'b' })]
    for (let i = 0; i < 20; i++) for (const replica of [first, second]) await store(replica, `d${i}`, ['r'])
    expect(await compareDigests({ first, second, revsLimit, buckets: 8, call: plainCall })).to.deep.equal({
      buckets: 0, documents: 0,
    })
  })

  it('reads all documents once where many buckets differ, and copies both ways', async () => {
    const [one, other] = [new MemoryShardReplica({ history: 's' }), new MemoryShardReplica({ history: 't' })]
    for (let i = 0; i < 300; i++) {
      await store(one, `both${i}`, ['r'])
      await store(other, `both${i}`, ['r'])
      if (i % 3 === 0) await store(one, `one${i}`, ['r'], {}, i % 2 === 0)
      if (i % 5 === 0) await store(other, `other${i}é`, ['r'])
      if (i % 7 === 0) await store(other, `both${i}`, ['q', 'r'])
    }
    let scans = 0
    const counted = new WatchedReplica({
      replica: () => one, onCall: verb => { if (verb === 'scanDigestBucket') scans++ },
    })
    const result = await compareDigests({ first: counted, second: other, revsLimit, buckets: 64, call: plainCall })
    expect(result.documents).to.equal(100 + 60 + 43)
    expect(scans).to.equal(1)
    expect((await contents(one) as { documents: unknown }).documents).to.deep.equal(
      (await contents(other) as { documents: unknown }).documents,
    )
    expect(await compareDigests({ first: one, second: other, revsLimit, buckets: 64, call: plainCall })).to.deep.equal({
      buckets: 0, documents: 0,
    })
  })

  it('finds differences that checkpoints miss, and copies them both ways', async () => {
    const [first, second] = [new MemoryShardReplica({ history: 'a' }), new MemoryShardReplica({ history: 'b' })]
    for (let i = 0; i < 20; i++) for (const replica of [first, second]) await store(replica, `d${i}`, ['r'])
    await store(first, 'only-first', ['r'], { v: 1 })
    await store(second, 'only-second', ['r'], { v: 2 })
    await store(first, 'd3', ['s', 'r'], { newer: true })
    await store(second, 'd4', ['s', 'r'], { branch: 2 })
    await store(first, 'd4', ['t', 'r'], { branch: 1 })
    // The checkpoints claim too much, as after a restored backup.
    for (const [replica, history] of [[first, 'b'], [second, 'a']] as const) {
      await replica.storeRevisions({ revisions: [], revsLimit, checkpoint: { history, sequence: 1000 } }, plainCall)
    }
    expect((await pass(first, second)).stored + (await pass(second, first)).stored).to.equal(0)
    expect((await compareDigests({ first, second, revsLimit, buckets: 8, call: plainCall })).documents).to.equal(4)
    expect(await contents(second)).to.deep.equal(await contents(first))
  })

  it('makes a leaf an ancestor where only the other replica has the revisions up to a newer leaf', async () => {
    const ids = ['e', 'd', 'c', 'b', 'a']
    for (const buckets of [1, 8]) {
      const [first, second] = [new MemoryShardReplica({ history: 'a' }), new MemoryShardReplica({ history: 'b' })]
      for (let i = 0; i < 8; i++) {
        const revision = { id: `d${i}`, path: { start: 5, ids }, deleted: false, body: bytes({ v: 5 }) }
        await first.storeRevisions({ revisions: [revision], revsLimit: 2 }, plainCall)
        await second.storeRevisions({ revisions: [revision], revsLimit }, plainCall)
        for (const replica of [first, second]) await store(replica, `d${i}`, ['b', 'a'])
      }
      expect(await contents(first)).not.to.deep.equal(await contents(second))
      await compareDigests({ first, second, revsLimit, buckets, call: plainCall })
      expect(await contents(first)).to.deep.equal(await contents(second))
    }
  })
})
