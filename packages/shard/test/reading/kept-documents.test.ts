import { RevisionTree } from '@sectional/core'
import { MemoryStorage, sealBytes } from '@sectional/runtime'
import { expect } from 'chai'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { KeptDocuments, KeptDocumentsBudget } from '../../src/reading/kept-documents.ts'
import { ByteWriter } from '../../src/records/byte-writer.ts'
import { DocumentRecord } from '../../src/records/document-record.ts'
import { context, edit, shardA, shardRuntime } from '../shard-world.ts'

const hash = 'a'.repeat(32)

/** @param revisions the number of revisions of the document, which has a single branch */
function document(id: string, revisions = 1): Uint8Array {
  const ids = Array.from({ length: revisions }, (_, index) => String(index).padStart(32, '0'))
  const { tree } = RevisionTree.empty.merge({ start: revisions, ids }, { deleted: false, bodyKey: 1 })
  const leaf = { revision: `${revisions}-${hash}`, deleted: false, bodySequence: 1, bodyBytes: 2 }
  return DocumentRecord.encode(new ByteWriter(sealBytes), new ByteWriter(sealBytes), id, 1, [leaf], tree).bytes
}

describe('documents kept in memory', () => {
  const megabyte = 1024 * 1024

  function readAgain(kept: KeptDocuments, id: string, record = document(id)): void {
    for (let time = 0; time < 2; time++) if (kept.get(id) === undefined) kept.keep(id, record, kept.reading())
  }

  function howMany(kept: KeptDocuments, ids: readonly string[]): number {
    return ids.filter(id => kept.get(id) !== undefined).length
  }

  it('are those that are read again, not those that are read once', () => {
    const kept = new KeptDocuments(new KeptDocumentsBudget(megabyte))
    const record = document('a')
    kept.keep('a', record, kept.reading())
    expect(kept.get('a')).to.equal(undefined)
    kept.keep('a', record, kept.reading())
    expect(kept.get('a')).to.deep.equal(DocumentRecord.decode('a', record))
  })

  it('are forgotten when a batch that changes them is staged, and not what was read before it or beside it', () => {
    const kept = new KeptDocuments(new KeptDocumentsBudget(megabyte))
    for (const id of ['a', 'b']) readAgain(kept, id)
    const before = kept.reading()
    const batch = {}
    kept.staged(batch, [['a']])
    expect(kept.get('a')).to.equal(undefined)
    expect(kept.get('b')).to.not.equal(undefined)
    const beside = kept.reading()
    kept.keep('a', document('a'), before)
    kept.keep('a', document('a'), beside)
    kept.landed(batch)
    kept.keep('a', document('a'), before)
    kept.keep('a', document('a'), beside)
    expect(kept.get('a')).to.equal(undefined)
    kept.keep('a', document('a'), kept.reading())
    expect(kept.get('a')).to.not.equal(undefined)
  })

  it('are forgotten when a batch changes them, also when they were read before and after the memory was full', () => {
    const kept = new KeptDocuments(new KeptDocumentsBudget(megabyte))
    readAgain(kept, 'a')
    const half = megabyte / 2 / (128 + document('document-1000').length)
    for (let index = 0; index < half; index++) readAgain(kept, `document-${1000 + index}`)
    expect(kept.get('a')).to.not.equal(undefined)
    kept.staged({}, [['a']])
    expect(kept.get('a')).to.equal(undefined)
  })

  it('are forgotten when a batch changes them, also when only other shards were read since the memory was full', () => {
    const budget = new KeptDocumentsBudget(megabyte)
    const [kept, other] = [new KeptDocuments(budget), new KeptDocuments(budget)]
    readAgain(kept, 'a')
    const half = megabyte / 2 / (128 + document('document-1000').length)
    for (let index = 0; index < half; index++) readAgain(other, `document-${1000 + index}`)
    kept.staged({}, [['a']])
    expect(kept.get('a')).to.equal(undefined)
  })

  it('of all shards of a node take bounded memory, and make way for others when they are not read any more', () => {
    const budget = new KeptDocumentsBudget(megabyte)
    const parts = [new KeptDocuments(budget), new KeptDocuments(budget)]
    const ids = Array.from({ length: 20_000 }, (_, index) => `document-${index}`)
    for (const [index, id] of ids.entries()) {
      readAgain(parts[index % 2]!, id)
      readAgain(parts[0]!, 'often')
    }
    const bytes = 128 + document('document-1').length
    const left = howMany(parts[0]!, ids) + howMany(parts[1]!, ids)
    expect(left).to.be.within(megabyte / 2 / bytes - 2, megabyte / bytes)
    expect(parts[0]!.get('often')).to.not.equal(undefined)
    parts[0]!.release()
    expect(howMany(parts[0]!, ids)).to.equal(0)
  })

  it('are what was kept, whatever their lengths and however often the memory has turned over', () => {
    const kept = new KeptDocuments(new KeptDocumentsBudget(megabyte))
    const records = Array.from({ length: 5000 }, (_, index) => document(`document-${index}`, 1 + index % 37))
    for (const [index, record] of records.entries()) {
      readAgain(kept, `document-${index}`, record)
      const earlier = index - index % 700
      expect(kept.get(`document-${earlier}`)).to.deep.equal(
        DocumentRecord.decode(`document-${earlier}`, records[earlier]!),
      )
    }
    const left = records.flatMap((record, index) =>
      kept.get(`document-${index}`) === undefined ? [] : [record.length + 128])
    expect(left.length).to.be.greaterThan(100)
    expect(left.reduce((sum, bytes) => sum + bytes, 0)).to.be.within(megabyte / 2 - 5000, megabyte)
  })

  it('are what was kept, whatever room their piece of memory has left for them', () => {
    for (let length = 4090; length <= 4096; length++) {
      const budget = new KeptDocumentsBudget(megabyte)
      const kept = new KeptDocuments(budget)
      for (let record = 0; record < 63; record++) budget.put(kept, Buffer.alloc(4094))
      const record = Buffer.alloc(length, 'x')
      const place = budget.put(kept, record)
      expect(Buffer.compare(budget.read(place, false), record)).to.equal(0)
    }
  })

  it('are none with a long history', () => {
    const kept = new KeptDocuments(new KeptDocumentsBudget(megabyte))
    readAgain(kept, 'short', document('short', 50))
    readAgain(kept, 'long', document('long', 1000))
    expect(howMany(kept, ['short', 'long'])).to.equal(1)
    expect(kept.get('long')).to.equal(undefined)
  })

  describe('by a shard', () => {
    let storage: MemoryStorage
    let host: ShardHost
    let replica: ShardEngine
    let read: string[]

    beforeEach(async () => {
      storage = new MemoryStorage()
      host = await ShardHost.open(shardRuntime(storage))
      replica = await host.create(shardA)
      const { store, keys } = replica.records
      const { getSync } = store
      const wanted = keys.document('a')
      read = []
      store.getSync = key => {
        if (key === wanted) read.push('a')
        return getSync.call(store, key)
      }
    })
    afterEach(() => host.close())

    const update = async (parent: string | null, value: number): Promise<string> => {
      const reply = await replica.updateDocuments({ edits: [edit('a', parent, { value })], revsLimit: 10 }, context)
      const outcome = reply.kind === 'decided' ? reply.outcomes[0]! : undefined
      if (outcome?.kind !== 'updated') throw new Error('not updated')
      return `${outcome.path.start}-${outcome.path.ids[0]}`
    }
    const winner = async (): Promise<string | undefined> =>
      (await replica.openDocument({ id: 'a', body: true, tree: true }, context))?.leaves[0]?.revision

    it('are not looked for in the store again, and are what was written last', async () => {
      let revision = await update(null, 0)
      for (let value = 1; value < 5; value++) {
        for (let time = 0; time < 4; time++) expect(await winner()).to.equal(revision)
        revision = await update(revision, value)
      }
      expect(await winner()).to.equal(revision)
      expect(read.length).to.be.below(8)
    })

    it('are none read after a failed batch, until the store has recovered: the batch may take effect', async () => {
      const revision = await update(null, 0)
      storage.disk.setFaults({ failWrite: () => 'io', failRecovery: () => 'io' })
      expect(await update(revision, 1)
        .then(() => 'written', (error: { code: string }) => error.code)).to.equal('storage')
      expect(replica.records.kept!.reading()).to.equal(undefined)
      storage.disk.setFaults({})
      await update(revision, 2)
      expect(replica.records.kept!.reading()).to.be.a('number')
    })
  })
})
