import { createHash } from 'node:crypto'
import { attachmentDigests, revisionHash, type AttachmentRecord, type DocumentEdit } from '@sectional/core'
import { BlobError, ManualClock, MemoryBlobStorage, MemoryStorage } from '@sectional/runtime'
import { expect } from 'chai'
import { ShardHost } from '../../src/index.ts'
import { leaseMs } from '../../src/blobs/blob-leases.ts'
import { verifyShard } from '../../src/scrub/shard-verify.ts'
import type { ShardEngine } from '../../src/engine/shard-engine.ts'
import { context, json, shardA, shardB, shardRuntime } from '../shard-world.ts'

class BlobWorld {
  readonly clock = new ManualClock()
  storage = new MemoryStorage()
  blobs = new MemoryBlobStorage()
  host!: ShardHost

  async open(): Promise<this> {
    this.host = await ShardHost.open(shardRuntime(this.storage, this.clock, 1, this.blobs))
    return this
  }

  /** Simulates that the process is killed and started again. */
  async crash(): Promise<void> {
    this.storage = this.storage.crash()
    this.blobs = this.blobs.crash()
    await this.open()
  }

  /** Waits until leases have ended, so that unnamed blobs can be removed. */
  async passLeases(): Promise<void> {
    await this.clock.advance(leaseMs + 1)
  }

  stored(): string[] {
    return [...this.blobs.disk.blobs('attachments').keys()].sort()
  }
}

async function* once(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}

async function upload(replica: ShardEngine, content: string): Promise<AttachmentRecord> {
  const { hash, length } = await replica.blobs.writeBlob(once(content), context)
  const digest = createHash('md5').update(content).digest('base64')
  return {
    name: content, contentType: 'x/y', revpos: 1, digest, blob: hash, length, encoding: 'identity',
    storedLength: length,
  }
}

function editWith(id: string, parent: string | null, attachments: readonly AttachmentRecord[]): DocumentEdit {
  const body = json({})
  return {
    id, parent, deleted: false, body, attachments,
    revisionHash: revisionHash({ deleted: false, parent, body, attachments: attachmentDigests(attachments) }),
  }
}

async function write(
  replica: ShardEngine, id: string, parent: string | null, attachments: readonly AttachmentRecord[], revsLimit = 1000,
): Promise<string> {
  const reply = await replica.updateDocuments({ edits: [editWith(id, parent, attachments)], revsLimit }, context)
  if (reply.kind !== 'decided' || reply.outcomes[0]?.kind !== 'updated') throw new Error('not written')
  const { path } = reply.outcomes[0]
  return `${path.start}-${path.ids[0]}`
}

describe('blobs of a node', () => {
  let world: BlobWorld
  let replica: ShardEngine
  beforeEach(async () => {
    world = await new BlobWorld().open()
    replica = await world.host.create(shardA)
  })
  afterEach(() => world.host.close())

  it('are stored once for all documents, revisions and shards that name them', async () => {
    const other = await world.host.create(shardB)
    const attachment = await upload(replica, 'shared')
    expect(await upload(other, 'shared')).to.deep.equal(attachment)
    await write(replica, 'one', await write(replica, 'one', null, [attachment]), [attachment])
    await write(other, 'two', null, [attachment])
    expect(world.stored()).to.have.length(1)
    await world.passLeases()
    await world.host.drop(shardA)
    await world.host.reclaimed()
    expect(await world.host.blobs.collect()).to.equal(0)
    await world.host.drop(shardB)
    await world.host.reclaimed()
    expect(await world.host.blobs.collect()).to.equal(1)
    expect(world.stored()).to.deep.equal([])
  })

  it('are removed when nothing names them after a write that lacked other content', async () => {
    const attachment = await upload(replica, 'present')
    const lost = { ...attachment, name: 'lost', blob: 'f'.repeat(64) }
    expect(await write(replica, 'one', null, [attachment, lost]).catch((error: { code?: string }) => error.code))
      .to.equal('missing_blob')
    const arrived = await upload(replica, 'arrived later')
    expect(await write(replica, 'two', null, [lost, arrived]).catch((error: { code?: string }) => error.code))
      .to.equal('missing_blob')
    expect(world.stored()).to.have.length(2)
    await world.passLeases()
    await world.host.blobs.collect()
    expect(world.stored()).to.deep.equal([])
  })

  it('are kept for one body among many that are gone', async () => {
    const attachment = await upload(replica, 'shared')
    await write(replica, 'kept', null, [attachment])
    let revision: string | null = null
    for (let times = 0; times < 40; times++) revision = await write(replica, 'other', revision, [attachment], 1)
    await write(replica, 'other', revision, [], 1)
    await world.passLeases()
    expect(await world.host.blobs.collect()).to.equal(0)
    expect(world.stored()).to.deep.equal([attachment.blob])
  })

  it('of a dropped shard are removed within a minute', async () => {
    await write(replica, 'one', null, [await upload(replica, 'content')])
    await world.passLeases()
    await world.host.drop(shardA)
    await world.host.reclaimed()
    expect(world.stored()).to.have.length(1)
    await world.clock.advance(60_000)
    expect(world.stored()).to.deep.equal([])
  })

  it('are all scrubbed, also behind one that the disk does not read', async () => {
    const hashes = [(await upload(replica, 'first')).blob, (await upload(replica, 'second')).blob].sort()
    await world.host.close()
    const scrubbed: string[] = []
    const open = world.blobs.open.bind(world.blobs)
    world.blobs.open = async name => {
      const store = await open(name)
      const read = store.open.bind(store)
      store.open = (hash, range) => {
        scrubbed.push(hash)
        if (hash === hashes[0]) throw new BlobError('io', 'unreadable')
        return read(hash, range)
      }
      return store
    }
    await world.open()
    const failure: unknown = await world.host.blobs.scrub(async () => {}).catch((error: unknown) => error)
    expect(failure).to.include({ code: 'storage', message: 'unreadable' })
    expect(scrubbed).to.deep.equal(hashes)
  })

  it('are kept while a stored revision names them, and removed afterwards', async () => {
    const [first, second] = [await upload(replica, 'first'), await upload(replica, 'second')]
    const one = await write(replica, 'doc', null, [first])
    const two = await write(replica, 'doc', one, [second])
    await world.passLeases()
    expect(await world.host.blobs.collect()).to.equal(0)
    await write(replica, 'doc', two, [second], 1)
    expect(await world.host.blobs.collect()).to.equal(1)
    expect(world.stored()).to.deep.equal([second.blob])
    expect((await verifyShard(replica.records)).problems).to.deep.equal([])
  })

  it('that no document names yet are kept during a lease, and longer when requested again', async () => {
    const attachment = await upload(replica, 'waiting')
    expect(await world.host.blobs.collect()).to.equal(0)
    await world.clock.advance(leaseMs - 1)
    expect(await replica.blobs.hasBlobs([attachment.blob], context)).to.deep.equal([true])
    await world.clock.advance(leaseMs - 1)
    expect(await world.host.blobs.collect()).to.equal(0)
    await world.passLeases()
    expect(await world.host.blobs.collect()).to.equal(1)
    const refused = await write(replica, 'doc', null, [attachment]).catch((error: { code: string }) => error.code)
    expect(refused).to.equal('missing_blob')
  })

  it('are removed automatically when no document names them', async () => {
    const kept = await upload(replica, 'kept')
    await write(replica, 'doc', null, [kept])
    await upload(replica, 'abandoned')
    await world.clock.advance(leaseMs + 3_600_000)
    for (let turn = 0; turn < 50; turn++) await world.clock.advance(0)
    expect(world.stored()).to.deep.equal([kept.blob])
  })

  it('are never removed under a document that is being written', async () => {
    const attachment = await upload(replica, 'raced')
    await world.passLeases()
    for (let round = 0; round < 20; round++) {
      const [, written] = await Promise.all([
        world.host.blobs.collect(),
        write(replica, `doc${round}`, null, [attachment]).catch((error: { code: string }) => error.code),
      ])
      if (written === 'missing_blob') {
        expect(world.stored()).to.deep.equal([])
        await upload(replica, 'raced')
        await world.passLeases()
      } else {
        expect(world.stored()).to.deep.equal([attachment.blob])
      }
    }
  })

  it('survive a crash with the documents that name them; unfinished ones do not', async () => {
    const attachment = await upload(replica, 'durable')
    await write(replica, 'doc', null, [attachment])
    let begun = (): void => {}
    const started = new Promise<void>(resolve => { begun = resolve })
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('half')
      begun()
      await new Promise(() => {})
    }
    replica.blobs.writeBlob(endless(), context).catch(() => {})
    await started
    await world.crash()
    await world.passLeases()
    expect(await world.host.blobs.collect()).to.equal(0)
    const opened = await (await world.host.open(shardA)).openDocument({ id: 'doc', body: true, tree: false }, context)
    expect(opened?.attachments).to.deep.equal([attachment])
    expect(world.stored()).to.deep.equal([attachment.blob])
  })

  it('that are damaged are distinguished from missing ones', async () => {
    const { blob } = await upload(replica, 'fragile')
    const code = async (): Promise<string> => {
      try {
        for await (const chunk of replica.blobs.readBlob({ hash: blob, span: null }, context)) void chunk
        return 'whole'
      } catch (error) {
        return (error as { code: string }).code
      }
    }
    expect(await code()).to.equal('whole')
    world.blobs.disk.damage('attachments', blob)
    expect(await code()).to.equal('damaged_blob')
    await upload(replica, 'fragile')
    expect(await code()).to.equal('whole')
  })
})
