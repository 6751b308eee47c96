import { expect } from 'chai'
import fc from 'fast-check'
import { RevisionTree } from '@sectional/core'
import { MemoryStorage, sealBytes, sealRecord } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import { ShardKeys } from '../../src/records/key-layout.ts'
import { decodeCheckpoint, encodeCheckpoint } from '../../src/reading/shard-records.ts'
import { ByteReader } from '../../src/records/byte-reader.ts'
import { ByteWriter } from '../../src/records/byte-writer.ts'
import { furtherChunksOf, joinBody, putBody, storedBody } from '../../src/records/body-record.ts'
import {
  beginDocumentChange, decodeChange, encodeLocalChange, finishDocumentChange, isDocumentChange,
} from '../../src/records/change-record.ts'
import { DamagedRecordError } from '../../src/records/damaged-record.ts'
import { DocumentRecord } from '../../src/records/document-record.ts'
import { decodeLocal, encodeLocal } from '../../src/records/local-record.ts'
import { decodePurgedId, decodePurges, encodePurgedId, encodePurges } from '../../src/records/purge-records.ts'
import { decodeState, emptyState, encodeState } from '../../src/records/state-record.ts'
import { writeLeaves } from '../../src/records/stored-leaves.ts'
import type { StoredLeaf } from '../../src/records/stored-leaves.ts'
import { collect, context, edit, shardA, shardRuntime } from '../shard-world.ts'

const natural = fc.oneof(fc.nat(300), fc.maxSafeInteger().map(Math.abs))
const hash = fc.oneof(
  fc.string({ minLength: 1, maxLength: 5 }), fc.constantFrom('00ff'.repeat(8), 'ABCD'.repeat(8), 'x-y', '-'),
)
const leaf: fc.Arbitrary<StoredLeaf> = fc.record(
  { revision: fc.tuple(fc.integer({ min: 1, max: 5000 }), hash).map(([generation, text]) =>
    `${generation}-${text}`), deleted: fc.boolean(), bodySequence: natural, bodyBytes: natural, attempt: natural },
  { requiredKeys: ['revision', 'deleted', 'bodySequence', 'bodyBytes'] },
)
const leaves = fc.array(leaf, { minLength: 1, maxLength: 4 })

describe('records', () => {
  it('bring integers, text and bytes back', () => {
    fc.assert(fc.property(natural, fc.string(), fc.uint8Array(), (integer, text, bytes) => {
      const writer = new ByteWriter()
      writer.integer(integer)
      writer.text(text)
      writer.bytes(bytes)
      const reader = new ByteReader(writer.finish())
      expect(reader.integer()).to.equal(integer)
      expect(reader.text()).to.equal(text.toWellFormed())
      expect([...reader.rest()]).to.deep.equal([...bytes])
    }))
  })

  it('hold integers in LEB128', () => {
    const edges = [7, 14, 21, 28, 31, 32, 35, 42, 49, 53].flatMap(bits => [2 ** bits - 1, 2 ** bits])
      .filter(Number.isSafeInteger)
    fc.assert(fc.property(fc.oneof(natural, fc.constantFrom(...edges)), integer => {
      const writer = new ByteWriter()
      writer.integer(integer)
      const record = writer.finish()
      const groups = record.map((byte, index) => index < record.length - 1 ? byte ^ 0x80 : byte)
      expect(groups.every(group => group < 0x80)).to.equal(true)
      expect(groups.reduceRight((value, group) => value << 7n | BigInt(group), 0n)).to.equal(BigInt(integer))
      expect(new ByteReader(record).integer()).to.equal(integer)
    }), { numRuns: 1000 })
    expect(() => new ByteReader(new Uint8Array(9).fill(0x80)).integer()).to.throw(DamagedRecordError, 'too long')
  })

  it('bring changes and local documents back', () => {
    fc.assert(fc.property(fc.string(), leaves, natural, fc.option(fc.uint8Array()), (id, leaves, number, body) => {
      const writer = new ByteWriter(sealBytes)
      beginDocumentChange(writer, id)
      writeLeaves(writer, leaves)
      expect(decodeChange(finishDocumentChange(writer))).to.deep.equal({ id, leaves })
      expect(decodeChange(encodeLocalChange(writer, id))).to.deep.equal({ id, leaves: [] })
      const local = decodeLocal(id, encodeLocal({ id, sequence: number, stamp: number, revision: number, body }))
      expect({ ...local, body: local.body && [...local.body] }).to.deep.equal({
        id, sequence: number, stamp: number, revision: number, body: body && [...body],
      })
    }))
  })

  it('notice any flipped bit in a document', () => {
    const path = { start: 2, ids: ['0123456789abcdef'.repeat(2), 'b'] }
    const { tree } = RevisionTree.empty.merge(path, { deleted: false, bodyKey: 9 })
    const { bytes } = DocumentRecord.encode(
      new ByteWriter(sealBytes), new ByteWriter(sealBytes), 'a', 9,
      [{ revision: `2-${'0123456789abcdef'.repeat(2)}`, deleted: false, bodySequence: 9, bodyBytes: 3 }], tree,
    )
    expect(DocumentRecord.decode('a', bytes).tree.leaves()).to.deep.equal(tree.leaves())
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = Uint8Array.from(bytes)
      damaged[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => DocumentRecord.decode('a', damaged)).to.throw(DamagedRecordError)
    }
  })

  const records: Readonly<Record<string, {
    readonly bytes: Uint8Array
    readonly decode: (bytes: Uint8Array) => unknown
  }>> = {
    'a row of the changes log': { bytes: encodeLocalChange(new ByteWriter(sealBytes), 'a'), decode: decodeChange },
    'a row of the changes log that is only counted': {
      bytes: encodeLocalChange(new ByteWriter(sealBytes), 'a'), decode: isDocumentChange,
    },
    'a checkpoint': { bytes: encodeCheckpoint(1017), decode: decodeCheckpoint },
    'a row of the purge log': { bytes: encodePurgedId('doc'), decode: decodePurgedId },
    'a body and what its bytes mean': { bytes: storedBodyRecord('{"a":1}'), decode: bytes =>
      furtherChunksOf(1, bytes) + joinBody(1, bytes, []).body.length },
  }
  for (const [what, { bytes, decode }] of Object.entries(records)) {
    it(`notice any flipped bit, and a lost end, in ${what}`, () => {
      decode(bytes)
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const damaged = Uint8Array.from(bytes)
        damaged[bit >> 3]! ^= 1 << (bit & 7)
        expect(() => decode(damaged)).to.throw(DamagedRecordError)
      }
      for (let end = 0; end < bytes.length; end++) {
        expect(() => decode(bytes.slice(0, end))).to.throw(DamagedRecordError)
      }
    })
  }

  it('answer damaged or missing bodies with a storage error, so that another replica is asked', async () => {
    const storage = new MemoryStorage()
    let host = await ShardHost.open(shardRuntime(storage))
    let engine = await host.create(shardA)
    await engine.updateDocuments(
      { edits: [edit('a', null, { x: 1 }), edit('b', null, { x: 2 })], revsLimit: 10 }, context,
    )
    const { keys } = engine.records
    await host.close()
    const store = await storage.open('documents')
    const body = Buffer.from(store.getSync(keys.body(1))!)
    body[body.length - 1]! ^= 1
    await store.write(batch => { batch.put(keys.body(1), body); batch.delete(keys.body(2)) })
    await store.close()
    host = await ShardHost.open(shardRuntime(storage))
    engine = await host.open(shardA)
    for (const id of ['a', 'b']) {
      const error = await engine.openDocument({ id, body: true, tree: false }, context).catch((error: unknown) => error)
      expect(error).to.include({ code: 'storage' })
    }
    const error = await collect(engine.scanDocuments({ descending: false, body: true, leaves: false }, context))
      .catch((error: unknown) => error)
    expect(error).to.include({ code: 'storage' })
    await host.close()
  })
})

function storedBodyRecord(text: string): Uint8Array {
  const puts: Uint8Array[] = []
  putBody(
    { put: (_, value) => { puts.push(value) }, putLatest: () => {}, delete: () => {} }, new ShardKeys(1), 1,
    storedBody({ body: Buffer.from(text) }),
  )
  return puts[0]!
}

function sealedRecord(fill: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  fill(writer)
  return sealRecord(writer.finish())
}

describe('records that no version writes', () => {
  const local = encodeLocal({ id: 'l', sequence: 300, stamp: 300, revision: 300, body: null })
  const purge = { uuid: 'u', id: 'a', sequence: 300, changeSequence: 300, paths: [{ start: 2, ids: ['hash'] }] }
  const valid: readonly (readonly [string, Uint8Array, (bytes: Uint8Array) => unknown])[] = [
    ['state', encodeState(emptyState), decodeState],
    ['local document', local, bytes => decodeLocal('l', bytes)],
    ['purge', encodePurges([purge]), bytes => decodePurges('a', bytes)],
    ['change', sealedRecord(writer => {
      beginDocumentChange(writer, 'a')
      writeLeaves(writer, [{ revision: '1-x', deleted: false, bodySequence: 300, bodyBytes: 300 }])
    }), decodeChange],
    ['document', sealedRecord(writer => {
      writer.byte(1)
      writer.integer(300)
      writeLeaves(writer, [{ revision: `1-${'0a'.repeat(16)}`, deleted: false, bodySequence: 300, bodyBytes: 300 }])
    }), bytes => DocumentRecord.decode('a', bytes)],
  ]
  for (const [what, record, decode] of valid) {
    it(`are refused as damaged: a ${what} of unknown format, or that ends too early`, () => {
      decode(record)
      for (let length = sealBytes; length < record.length; length++) {
        expect(() => decode(sealRecord(Buffer.from(record.subarray(0, length)))), `${length} bytes`)
          .to.throw(DamagedRecordError)
      }
      if (what === 'local document') return
      for (const format of [0, 9]) {
        const other = Buffer.from(record)
        other[sealBytes] = format
        expect(() => decode(sealRecord(other)), `format ${format}`).to.throw(DamagedRecordError, String(format))
      }
    })
  }

  it('are refused as damaged: a document without leaves', () => {
    const change = sealedRecord(writer => {
      beginDocumentChange(writer, 'a')
      writer.integer(0)
    })
    expect(() => decodeChange(change)).to.throw(DamagedRecordError, 'no leaf')
  })
})

describe('records of earlier versions', () => {

  it('are read with what they lack as zero', () => {
    const state = sealedRecord(writer => {
      writer.byte(2)
      for (const number of [9, 5, 1, 3, 1000, 800, 70]) writer.integer(number)
    })
    expect(decodeState(state)).to.deep.equal({
      sequence: 9, documentCount: 5, deletedCount: 1, purgeSequence: 3, activeBytes: 1000, externalBytes: 800,
      replacedBytes: 70, purgesForgotten: 0,
    })
    const purges = sealedRecord(writer => {
      writer.byte(1)
      writer.integer(1)
      writer.text('u')
      for (const number of [4, 1, 2, 1]) writer.integer(number)
      writer.text('hash')
    })
    const paths = [{ start: 2, ids: ['hash'] }]
    expect(decodePurges('a', purges)).to.deep.equal([{ uuid: 'u', sequence: 4, changeSequence: 0, id: 'a', paths }])
  })
})
