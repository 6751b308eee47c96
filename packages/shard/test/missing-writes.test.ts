import type { ShardId } from '@sectional/core'
import { ManualClock, MemoryBlobStorage, MemoryDisk, MemoryStorage } from '@sectional/runtime'
import type { Store } from '@sectional/runtime'
import { expect } from 'chai'
import { documentStoreName, ShardHost, verifyShard } from '../src/index.ts'
import type { ShardEngine } from '../src/index.ts'
import { collect, context, edit, shardA, shardB, shardRuntime } from './shard-world.ts'

const journalBatches = 100

/** A disk that can lose the newest batches, with a host on it. */
class LossyWorld {
  readonly clock = new ManualClock()
  readonly disk = new MemoryDisk(this.clock)
  readonly blobs = new MemoryBlobStorage()
  damaged: ShardId[] = []
  host!: ShardHost

  constructor() {
    this.disk.keepJournal(journalBatches)
  }

  async open(seed: number): Promise<void> {
    this.damaged = []
    this.host = await ShardHost.open(shardRuntime(new MemoryStorage(this.disk), this.clock, seed, this.blobs))
    this.host.onDamage({ damagedReplica: shard => { this.damaged.push(shard) }, damagedBlob: () => {} })
  }

  /** Closes the host and removes batches from its disk. */
  async lose(from: number, to: number): Promise<void> {
    await this.host.close()
    expect(this.disk.loseBatches(documentStoreName, from, to)).to.equal(true)
  }

  get batches(): number {
    return this.disk.journalLength(documentStoreName)
  }
}

async function write(replica: ShardEngine, id: string): Promise<void> {
  await replica.updateDocuments({ edits: [edit(id, null, { id })], revsLimit: 100 }, context)
}

async function ids(replica: ShardEngine): Promise<string[]> {
  const rows = await collect(replica.scanDocuments({ descending: false, body: false, leaves: false }, context))
  return rows.map(({ id }) => id)
}

describe('a shard host whose disk lacks acknowledged writes', () => {
  let world: LossyWorld
  beforeEach(async () => {
    world = new LossyWorld()
    await world.open(1)
  })
  afterEach(() => world.host.close())

  it('gives each replica a new history before it is used, which knows nothing of other replicas', async () => {
    const a = await world.host.create(shardA)
    await write(a, 'one')
    await a.storeRevisions({
      revisions: [], revsLimit: 100, checkpoint: { history: 'other', sequence: 5 },
      trail: { history: 'other', base: { theirs: 0, own: 0 }, points: [{ theirs: 900, own: 900 }] },
    }, context)
    await a.purgeDocuments({ purges: [], checkpoint: { history: 'other', sequence: 3 } }, context)
    const followed = (replica: ShardEngine): Promise<number> =>
      replica.translateCheckpoints([{ history: 'other', sequence: 1000 }], context)
    const before = await a.upkeep.replicaInfo(context)
    expect([before.seen, before.purgesSeen, await followed(a)]).to.deep.equal([{ other: 5 }, { other: 3 }, 900])
    await world.lose(world.batches - 3, world.batches - 2)
    await world.open(2)
    const replica = world.host.replica(shardA)!
    expect(await ids(replica), 'the write before what the replica knew of the other one').to.deep.equal([])
    const after = await replica.upkeep.replicaInfo(context)
    expect(after.history).to.not.equal(before.history)
    expect([after.seen, after.purgesSeen, await followed(replica)]).to.deep.equal([{}, {}, 0])
    await world.host.close()
    await world.open(3)
    expect((await world.host.replica(shardA)!.upkeep.replicaInfo(context)).history).to.equal(after.history)
  })

  it('treats each of its replicas as damaged until the replica is rebuilt', async () => {
    const [a] = [await world.host.create(shardA), await world.host.create(shardB)]
    for (const id of ['one', 'two', 'three']) await write(a, id)
    const before = (await a.upkeep.replicaInfo(context)).history
    await world.lose(world.batches - 2, world.batches - 1)
    for (const seed of [2, 3]) {
      await world.open(seed)
      expect(world.damaged).to.have.deep.members([shardA, shardB])
      if (seed === 2) await world.host.close()
    }
    await world.host.rebuild(shardA)
    const rebuilt = world.host.replica(shardA)!
    expect((await rebuilt.upkeep.replicaInfo(context)).history).to.not.equal(before)
    expect((await verifyShard(rebuilt.records)).problems).to.deep.equal([])
    expect(await ids(rebuilt)).to.deep.equal(['one', 'three'])
    await world.host.close()
    await world.open(4)
    expect(world.damaged).to.deep.equal([shardB])
  })

  it('treats the replicas with keys in a damaged table as damaged, at its start and in a scrub', async () => {
    const a = await world.host.create(shardA)
    await world.host.create(shardB)
    await world.host.close()
    const storage = new MemoryStorage(world.disk)
    const asked: boolean[] = []
    const open = async (): Promise<Store> => {
      const store = await storage.open(documentStoreName)
      store.checkFiles = async contents => {
        asked.push(contents)
        return contents ? [a.records.keys.all()] : []
      }
      return store
    }
    const damaged = { open, exists: async () => true, remove: async () => {} }
    world.host = await ShardHost.open(shardRuntime(damaged, world.clock), { scrub: { pauseMs: 1000 } })
    world.host.onDamage({ damagedReplica: shard => { world.damaged.push(shard) }, damagedBlob: () => {} })
    await world.clock.advance(1)
    expect([asked, world.damaged]).to.deep.equal([[false], []])
    await world.clock.advance(1000)
    expect([asked, world.damaged]).to.deep.equal([[false, true], [shardA]])
  })

  it('is incomplete also after a restart, until it is told that it is not', async () => {
    expect(world.host.incomplete).to.equal(false)
    for (const incomplete of [true, false]) {
      await world.host.setIncomplete(incomplete)
      await world.host.create(shardA)
      await world.host.close()
      await world.open(2)
      expect(world.host.incomplete).to.equal(incomplete)
      expect(world.damaged, 'an entry that was added meanwhile is suspected').to.deep.equal([shardA])
    }
  })

  it('reuses no prefix that has keys, and clears keys of no shard', async () => {
    const added = world.batches
    const a = await world.host.create(shardA)
    await write(a, 'old')
    const { prefix } = a.records.keys
    await world.lose(added, added + 1)
    await world.open(2)
    expect(world.host.list()).to.deep.equal([])
    const again = await world.host.create(shardA)
    expect(again.records.keys.prefix).to.be.greaterThan(prefix)
    await world.host.reclaimed()
    expect(await ids(again)).to.deep.equal([])
    expect(world.disk.entries(documentStoreName)
      .filter(([key]) => key.startsWith('\0\0\0' + String.fromCharCode(prefix)))).to.deep.equal([])
  })

  it('treats a newly created replica as damaged, since its entry may be among the missing writes', async () => {
    const added = world.batches
    const a = await world.host.create(shardA)
    await write(a, 'old')
    await world.lose(added, added + 1)
    await world.open(2)
    expect([world.host.list(), world.host.incomplete]).to.deep.equal([[], true])
    await world.host.create(shardA)
    expect(world.damaged).to.deep.equal([shardA])
    await world.host.close()
    await world.open(3)
    expect([world.damaged, world.host.incomplete]).to.deep.equal([[shardA], true])
    await world.host.rebuild(shardA)
    await world.host.setIncomplete(false)
    await world.host.create(shardB)
    await world.host.close()
    await world.open(4)
    expect([world.damaged, world.host.incomplete]).to.deep.equal([[], false])
  })
})
