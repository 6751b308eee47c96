import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { RevisionTree } from '@sectional/core'
import type { AttachmentRecord } from '@sectional/core'
import { ManualClock, MemoryStorage, sealBytes } from '@sectional/runtime'
import type { WriteBatch } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../../src/index.ts'
import type { ShardEngine, ShardKeys } from '../../src/index.ts'
import { ByteWriter } from '../../src/records/byte-writer.ts'
import { encodeLocalChange } from '../../src/records/change-record.ts'
import { DocumentRecord } from '../../src/records/document-record.ts'
import { blobKeys } from '../../src/records/key-layout.ts'
import { encodeState } from '../../src/records/state-record.ts'
import { context, edit, json, shardA, shardRuntime } from '../shard-world.ts'

type Damage = (batch: WriteBatch, keys: ShardKeys, engine: ShardEngine) => void

/** Writes the record of a document again, with other leaves, tree or sequence. */
function rewrite(id: string, change: (record: DocumentRecord) => Partial<DocumentRecord>): Damage {
  return (batch, keys, { records }) => {
    const record = records.document(id)!
    const { sequence = record.sequence, leaves = record.leaves, tree = record.tree } = change(record)
    const [writer, changeWriter] = [new ByteWriter(sealBytes), new ByteWriter(sealBytes)]
    const { bytes } = DocumentRecord.encode(writer, changeWriter, id, sequence, leaves, tree)
    batch.put(keys.document(id), bytes)
  }
}

describe('the verification of a shard', () => {
  let host: ShardHost
  let engine: ShardEngine
  let attached: AttachmentRecord

  beforeEach(async () => {
    host = await ShardHost.open(shardRuntime(new MemoryStorage(), new ManualClock()))
    engine = await host.create(shardA)
    const { hash: blob } = await engine.blobs.writeBlob((async function* () { yield Buffer.from('x') })(), context)
    attached = {
      name: 'n', contentType: 'text/plain', revpos: 1, digest: createHash('md5').update('x').digest('base64'), blob,
      length: 1, encoding: 'identity', storedLength: 1,
    }
    const edits = [
      edit('a', null, { v: 1 }), edit('b', null, { v: 2 }), { ...edit('c', null, {}), attachments: [attached] },
    ]
    await engine.updateDocuments({ edits, revsLimit: 10 }, context)
    await engine.updateLocalDocument({ id: 'l', revision: 1, body: json({}), mustExist: false }, context)
  })
  afterEach(() => host.close())

  async function problemsAfter(damage: Damage): Promise<readonly string[]> {
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
    const { store, keys } = engine.records
    await store.write(batch => damage(batch, keys, engine))
    return (await verifyShard(engine.records)).problems
  }

  const found: readonly (readonly [string, Damage, RegExp])[] = [
    ['leaves that differ from the tree', rewrite('a', ({ leaves: [leaf] }) => (
      { leaves: [{ ...leaf, deleted: true }] })), /document a: its leaves are not those of its tree/],
    ['a tree with another leaf', rewrite('a', ({ tree }) => (
      { tree: tree.merge({ start: 1, ids: ['ff'.repeat(16)] }, { deleted: false, bodyKey: 77 }).tree })),
      /document a: its leaves are not those of its tree/],
    ['a body that belongs to two documents', rewrite('b', ({ leaves: [leaf], tree }) => {
      const path = tree.path(leaf.revision)!
      return {
        leaves: [{ ...leaf, bodySequence: 1 }],
        tree: RevisionTree.empty.merge(path, { deleted: false, bodyKey: 1 }).tree,
      }
    }), /document b: the body at 1 also belongs to a/],
    ['a sequence of two documents', rewrite('b', () => ({ sequence: 1 })),
      /sequence 1 belongs to .*"a".* and to .*"b"/],
    ['a change of another document', (batch, keys) => {
      batch.put(keys.change(1), encodeLocalChange(new ByteWriter(sealBytes), 'a'))
    }, /change 1 is .*"a","leaves":\[\]}, not .*"a"/],
    ['a change of no document', (batch, keys) => {
      batch.put(keys.change(9), encodeLocalChange(new ByteWriter(sealBytes), 'z'))
    }, /change 9 is .*"z".*, not undefined/],
    ['a missing change', (batch, keys) => { batch.delete(keys.change(2)) }, /change 2 is missing: .*"b"/],
    ['a body of no revision', (batch, keys, { records }) => {
      batch.put(keys.body(8), records.store.getSync(keys.body(1))!)
    }, /the body at 8 belongs to no revision/],
    ['a missing body', (batch, keys) => { batch.delete(keys.body(2)) }, /document b: its body at 2 is missing/],
    ['a missing reference to the content of an attachment', (batch, { prefix }) => {
      batch.delete(blobKeys.reference(attached.blob, { prefix, sequence: 3 }))
    }, /the body at 3 has no reference to the content of n/],
    ['a missing local document', (batch, keys) => { batch.delete(keys.localDocument('l')) }, /change 4 is .*"l"/],
    ...(['documentCount', 'deletedCount', 'activeBytes', 'externalBytes'] as const).map(name => [
      `a wrong ${name}`, (batch: WriteBatch, keys: ShardKeys, { records }: ShardEngine) => {
        const state = records.state()
        batch.put(keys.state(), encodeState({ ...state, [name]: state[name] + 1 }))
      }, new RegExp(`^${name} is \\d+, not \\d+`),
    ] as const),
    ...[3, 5].map(sequence => [
      `the sequence ${sequence} instead of 4`, (batch: WriteBatch, keys: ShardKeys, { records }: ShardEngine) => {
        batch.put(keys.state(), encodeState({ ...records.state(), sequence }))
      }, new RegExp(`the sequence is ${sequence}, not 4`),
    ] as const),
  ]
  for (const [what, damage, problem] of found) {
    it(`finds ${what}`, async () => {
      const problems = await problemsAfter(damage)
      expect(problems.filter(text => problem.test(text)), problems.join('\n')).not.to.deep.equal([])
    })
  }

  it('accepts a higher sequence after a purge, which takes one and may leave no change', async () => {
    await engine.purgeDocuments({ purges: [{ uuid: 'u', id: 'gone', paths: [{ start: 1, ids: ['x'] }] }] }, context)
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
    const problems = await problemsAfter((batch, keys, { records }) => {
      batch.put(keys.state(), encodeState({ ...records.state(), sequence: 3 }))
    })
    expect(problems).to.deep.equal(['the sequence is 3, not 4'])
  })
})
