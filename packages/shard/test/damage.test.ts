import { createHash } from 'node:crypto'
import type { AttachmentRecord, DocumentEdit, ShardId } from '@sectional/core'
import { ManualClock, MemoryBlobStorage, MemoryStorage, StorageError } from '@sectional/runtime'
import type { Store, StoreEntry } from '@sectional/runtime'
import { expect } from 'chai'
import { ShardHost, ShardKeys, verifyShard } from '../src/index.ts'
import type { KeyKind, ShardEngine } from '../src/index.ts'
import { directoryKeys } from '../src/records/key-layout.ts'
import { collect, context, edit, json, shardA, shardB, shardRuntime } from './shard-world.ts'

const scrubPauseMs = 1000

class DamageWorld {
  readonly clock = new ManualClock()
  readonly storage = new MemoryStorage()
  readonly blobs = new MemoryBlobStorage()
  readonly damaged: ShardId[] = []
  readonly damagedBlobs: { readonly hash: string; readonly shards: readonly ShardId[] }[] = []
  host!: ShardHost
  replica!: ShardEngine

  async open(): Promise<this> {
    this.host = await ShardHost.open(shardRuntime(this.storage, this.clock, 1, this.blobs), {
      scrub: { pauseMs: scrubPauseMs },
    })
    this.host.onDamage({
      damagedReplica: shard => { this.damaged.push(shard) },
      damagedBlob: (hash, shards) => { this.damagedBlobs.push({ hash, shards }) },
    })
    this.replica = await this.host.create(shardA)
    return this
  }

  get store(): Store {
    return this.replica.records.store
  }

  /** Flips a bit in each record of a kind. */
  async damage(kind: KeyKind, only: (key: string) => boolean = () => true): Promise<number> {
    const entries: StoreEntry[] = (await this.store.iterate(this.replica.records.keys.kind(kind))
      .next(1000)).filter(([key]) => only(key))
    await this.store.write(batch => {
      for (const [key, value] of entries) {
        const damaged = Uint8Array.from(value)
        damaged[damaged.length - 1]! ^= 1
        batch.put(key, damaged)
      }
    })
    return entries.length
  }

  /** Deletes the first record of a kind; of bodies the newest one, since older ones belong to replaced revisions. */
  async lose(kind: KeyKind): Promise<void> {
    const keys = (await this.store.iterate(this.replica.records.keys.kind(kind), { values: false })
      .next(1000)).map(([key]) => key)
    await this.store.write(batch => batch.delete(kind === 'b' ? keys.at(-1)! : keys[0]!))
  }

  /** Resolves when a scrub has reported damage. */
  async scrubbed(): Promise<void> {
    await this.clock.advance(scrubPauseMs)
    for (let turns = 0; this.damaged.length === 0 && turns < 100; turns++) await this.clock.advance(1)
    expect(this.damaged).to.deep.equal([shardA])
  }

  async fill(): Promise<void> {
    await this.replica.updateDocuments(
      { edits: [edit('a', null, { v: 1 }), edit('b', null, { v: 2 }), edit('c', null, { v: 3 })], revsLimit: 100 },
      context,
    )
    await this.replica.updateDocuments(
      { edits: [edit('a', await this.revision('a'), { v: 4 })], revsLimit: 100 }, context,
    )
    await this.replica.updateLocalDocument({ id: 'l', revision: 1, body: json({ v: 5 }), mustExist: false }, context)
    await this.replica.purgeDocuments(
      {
        purges: [{ uuid: 'u', id: 'gone', paths: [{ start: 1, ids: ['x'] }] }],
        checkpoint: { history: 'other', sequence: 3 },
      },
      context,
    )
    await this.replica.storeRevisions(
      { revisions: [], revsLimit: 100, checkpoint: { history: 'other', sequence: 7 } }, context,
    )
  }

  async purge(id: string): Promise<void> {
    const [generation, hash] = (await this.revision(id)).split('-')
    const purge = { uuid: `purge of ${id}`, id, paths: [{ start: Number(generation), ids: [hash!] }] }
    await this.replica.purgeDocuments({ purges: [purge] }, context)
  }

  async revision(id: string): Promise<string> {
    return (await this.replica.openDocument({ id, body: false, tree: false }, context))!.leaves[0]!.revision
  }

  /** Checks that the replica is consistent, and returns its documents. */
  async contents(): Promise<Record<string, string>> {
    const replica = this.host.replica(shardA)!
    expect((await verifyShard(replica.records)).problems).to.deep.equal([])
    const rows = await collect(replica.scanChanges({ since: 0, descending: false, body: true, locals: false }, context))
    const locals = await replica.openLocalDocuments(['l'], context)
    return {
      ...Object.fromEntries(rows.map(({ id, body }) => [id, String(Buffer.from(body!))])),
      ...(locals[0] && { l: String(Buffer.from(locals[0].body!)) }),
    }
  }

  async attach(id: string, content: string): Promise<DocumentEdit> {
    const written = await this.replica.blobs.writeBlob((async function* () { yield Buffer.from(content) })(), context)
    const record: AttachmentRecord = {
      name: 'n', contentType: 'text/plain', revpos: 1, digest: createHash('md5').update(content).digest('base64'),
      blob: written.hash,
      length: content.length, encoding: 'identity', storedLength: content.length,
    }
    return { ...edit(id, null, {}), attachments: [record] }
  }
}

const whole = { a: '{"v":4}', b: '{"v":2}', c: '{"v":3}', l: '{"v":5}' }

function without(id: string): Record<string, string> {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => name !== id))
}

describe('damage on the disk of a shard', () => {
  let world: DamageWorld

  beforeEach(async () => {
    world = await new DamageWorld().open()
    await world.fill()
  })

  afterEach(() => world.host.close())

  it('is reported when a call reads it, and fails the call like an error of the disk', async () => {
    await world.damage('i', key => ShardKeys.text(key) === 'b')
    expect(await world.replica.openDocument({ id: 'b', body: true, tree: false }, context)
      .catch((error: unknown) => error)).to.include({ name: 'ReplicaError', code: 'storage' })
    expect(await world.revision('a')).to.match(/^2-/)
    expect(world.damaged).to.deep.equal([shardA])
  })

  for (const kind of ['i', 's', 'b', 'l', 'm', 'c', 'p', 'q', 'g'] as const) {
    it(`is found by a scrub in any record of kind ${kind}, and gone after a rebuild`, async () => {
      expect(await world.damage(kind)).to.be.greaterThan(0)
      await world.clock.advance(scrubPauseMs)
      for (let turns = 0; world.damaged.length === 0 && turns < 100; turns++) await world.clock.advance(1)
      expect(world.damaged).to.deep.equal([shardA])
      const before = (await world.host.list()).length
      const report = await world.host.rebuild(shardA)
      expect(report.damaged > 0).to.equal('ibl'.includes(kind) || kind === 'q')
      const left: Record<string, string> = await world.contents()
      expect(left).to.deep.equal(
        kind === 'i' || kind === 'b' ? { l: whole.l } : kind === 'l' ? { a: whole.a, b: whole.b, c: whole.c } : whole,
      )
      expect(world.host.list().length).to.equal(before)
    })
  }

  for (const kind of ['i', 's', 'b', 'l', 'm'] as const) {
    it(`is found by a scrub when a record of kind ${kind} is missing, and gone after a rebuild`, async () => {
      await world.lose(kind)
      await world.scrubbed()
      await world.host.rebuild(shardA)
      const left = await world.contents()
      expect(left).to.deep.equal(kind === 'i' || kind === 'b' ? without('a') : kind === 'l' ? without('l') : whole)
    })
  }

  it('is found by a scrub when the body of a replaced revision is missing, and gone after a rebuild', async () => {
    const bodies = await world.store.iterate(world.replica.records.keys.kind('b'), { values: false }).next(1000)
    await world.store.write(batch => batch.delete(bodies[0]![0]))
    await world.scrubbed()
    await world.host.rebuild(shardA)
    expect(await world.contents()).to.deep.equal(whole)
  })

  for (const kind of ['i', 'l'] as const) {
    it(`creates no document under a changed key of kind ${kind}`, async () => {
      const [[key, value]] = (await world.store.iterate(world.replica.records.keys.kind(kind)).next(1)) as [StoreEntry]
      await world.store.write(batch => {
        batch.delete(key)
        batch.put(`${key}~`, value)
      })
      await world.scrubbed()
      expect((await world.host.rebuild(shardA)).damaged).to.equal(1)
      expect(await world.contents()).to.deep.equal(without(kind === 'i' ? 'a' : 'l'))
    })
  }

  it('makes a rebuild lose the damaged records only', async () => {
    await world.damage('i', key => ShardKeys.text(key) === 'b')
    expect(await world.host.rebuild(shardA)).to.deep.equal({ documents: 3, damaged: 1 })
    expect(await world.contents()).to.deep.equal({ a: whole.a, c: whole.c, l: whole.l })
  })

  it('makes a rebuild copy any number of documents, without those whose attachment content is missing', async () => {
    const edits = Array.from({ length: 200 }, (_, at) => edit(`d${at}`, null, { text: 'x'.repeat(at * 100) }))
    const attached = [await world.attach('d100x', 'kept'), await world.attach('d50x', 'lost')]
    await world.replica.updateDocuments({ edits: [...edits, ...attached], revsLimit: 100 }, context)
    await (await world.blobs.open('attachments')).delete(attached[1]!.attachments![0]!.blob)
    expect(await world.host.rebuild(shardA)).to.deep.equal({ documents: 206, damaged: 1 })
    const written = [...edits, attached[0]!].map(({ id, body }) => [id, String(body)])
    expect(await world.contents()).to.deep.equal({ ...whole, ...Object.fromEntries(written) })
  })

  it('makes a rebuild keep all conflicting branches', async () => {
    const [generation, hash] = (await world.revision('b')).split('-')
    const branch = { start: Number(generation) + 1, ids: ['ff', hash!] }
    const other = { start: Number(generation) + 1, ids: ['ee', hash!] }
    await world.replica.storeRevisions({
      revisions: [branch, other].map(path => ({ id: 'b', path, deleted: false, body: json({}) })), revsLimit: 100,
    }, context)
    const { leaves } = (await world.replica.openDocument({ id: 'b', body: false, tree: false }, context))!
    expect(leaves).to.have.length(2)
    await world.host.rebuild(shardA)
    const rebuilt = await world.host.replica(shardA)!.openDocument({ id: 'b', body: false, tree: false }, context)
    expect(rebuilt!.leaves).to.deep.equal(leaves)
  })

  it('makes a rebuild keep the attempt of each conflicting revision', async () => {
    const revisions = ['dd', 'ee', 'ff'].map((hash, attempt) => (
      { id: 'x', path: { start: 1, ids: [hash] }, deleted: false, body: json({}), ...(attempt > 0 && { attempt }) }))
    await world.replica.storeRevisions({ revisions, revsLimit: 100 }, context)
    await world.host.rebuild(shardA)
    const leaves = [{ id: 'x', revisions: 'leaves', latest: false } as const]
    const [opened] = await world.host.replica(shardA)!.openRevisions(leaves, context)
    const attempts = opened!.map(each => each.kind === 'found' && [each.revision.path.ids[0], each.revision.attempt])
    expect(attempts).to.deep.equal([['ff', 2], ['ee', 1], ['dd', undefined]])
  })

  it('gives the rebuilt replica a new history without checkpoints, and with its purges', async () => {
    const before = await world.replica.upkeep.replicaInfo(context)
    await world.host.rebuild(shardA)
    const after = await world.host.replica(shardA)!.upkeep.replicaInfo(context)
    expect(after.history).not.to.equal(before.history)
    expect([after.seen, after.purgesSeen, after.purgeSequence]).to.deep.equal([{}, {}, 1])
    expect((await collect(world.host.replica(shardA)!.scanPurges(0, context))).map(({ uuid }) =>
      uuid)).to.deep.equal(['u'])
  })

  it('makes a reader of changes and purges start again, and it then holds nothing that was purged', async () => {
    const request = { since: 0, descending: false, body: false, locals: false, purges: true }
    const { history } = await world.replica.upkeep.replicaInfo(context)
    const read = await collect(world.replica.scanChanges(request, { ...context, history }))
    expect(read.map(({ id }) => id)).to.include('a')
    await world.purge('a')
    await world.host.rebuild(shardA)
    const rebuilt = world.host.replica(shardA)!
    const place = { ...request, since: read.at(-1)!.sequence }
    const refused = await collect(rebuilt.scanChanges(place, { ...context, history })).catch((error: unknown) => error)
    expect(refused).to.include({ code: 'other_history' })
    const { history: next } = await rebuilt.upkeep.replicaInfo(context)
    const again = await collect(rebuilt.scanChanges(request, { ...context, history: next }))
    expect(again.map(({ id }) => id)).to.have.members(['b', 'c'])
  })

  it('is not reported for the row of a purged document, but for such a row without its recorded purge', async () => {
    await world.purge('a')
    await world.clock.advance(3 * scrubPauseMs)
    expect(world.damaged).to.deep.equal([])
    expect(await world.contents()).to.deep.equal(without('a'))
    await world.store.write(batch => batch.delete(world.replica.records.keys.purgesOf('a')))
    await world.scrubbed()
  })

  it('leaves no keys of the old incarnation, and none of a rebuild that a crash interrupted', async () => {
    const [before] = [world.replica.records.keys.prefix]
    await world.host.rebuild(shardA)
    await world.host.reclaimed()
    expect(await world.store.iterate(new ShardKeys(before).all()).next(1)).to.deep.equal([])
    const running = world.host.rebuild(shardA).catch(() => {})
    for (let turns = 0; turns < 12; turns++) await Promise.resolve()
    const storage = world.storage.crash()
    await running
    const again = await ShardHost.open(shardRuntime(storage, world.clock, 2, world.blobs))
    await again.reclaimed()
    const prefixes = new Set<number>()
    for (let prefix = 1; prefix < 10; prefix++) {
      if ((await again.replica(shardA)!.records.store.iterate(new ShardKeys(prefix).all()).next(1)).length > 0) {
        prefixes.add(prefix)
      }
    }
    expect([...prefixes]).to.deep.equal([again.replica(shardA)!.records.keys.prefix])
    expect((await verifyShard(again.replica(shardA)!.records)).problems).to.deep.equal([])
    await again.close()
  })

  it('makes calls wait for a rebuild, which keeps the writes that were accepted before it', async () => {
    const writing = world.replica.updateDocuments({ edits: [edit('d', null, { v: 6 })], revsLimit: 100 }, context)
    const rebuilding = world.host.rebuild(shardA)
    const reading = world.host.create(shardA)
      .then(replica => replica.openDocument({ id: 'd', body: true, tree: false }, context))
    await Promise.allSettled([writing])
    await rebuilding
    expect(String(Buffer.from((await reading)!.body!))).to.equal('{"v":6}')
  })

  it('is found by a scrub in attachment content, with the shards that name it', async () => {
    await world.host.create(shardB)
    const attached = await world.attach('att', 'content')
    await world.replica.updateDocuments({ edits: [attached], revsLimit: 100 }, context)
    const hash = attached.attachments![0]!.blob
    world.blobs.disk.damage('attachments', hash)
    for (let turns = 0; world.damagedBlobs.length === 0 && turns < 100; turns++) {
      await world.clock.advance(scrubPauseMs / 10)
    }
    expect(world.damagedBlobs[0]).to.deep.equal({ hash, shards: [shardA] })
    expect(world.damaged).to.deep.equal([])
  })

  it('is not reported when there is none', async () => {
    await world.clock.advance(3 * scrubPauseMs)
    expect([world.damaged, world.damagedBlobs]).to.deep.equal([[], []])
  })

  it('in the directory prevents the start of the node with an error that says what to do', async () => {
    await world.host.close()
    const store = await world.storage.open('documents')
    const entries = (await store.iterate(directoryKeys.shards()).next(9))
    await store.write(batch => {
      for (const [key, value] of entries) batch.put(key, Buffer.concat([value.subarray(0, -1), Buffer.from('x')]))
    })
    await store.close()
    const error = await ShardHost.open(shardRuntime(world.storage, world.clock)).catch((failure: unknown) => failure)
    expect(String(error)).to.match(/damaged.*empty this node's data directory/)
  })

  it('that makes the directory unreadable is reported with a remedy too', async () => {
    await world.host.close()
    const open = async (): Promise<Store> => {
      const store = await world.storage.open('documents')
      store.iterate = () => { throw new StorageError('corrupt', 'Corruption: corrupted compressed block contents') }
      return store
    }
    const storage = { open, exists: async () => true, remove: async () => {} }
    const error = await ShardHost.open(shardRuntime(storage, world.clock)).catch((failure: unknown) => failure)
    expect(String(error)).to.match(/document store is damaged: Corruption.*empty this node's data directory/)
  })
})
