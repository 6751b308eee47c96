import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { attachmentDigests } from '../revisions/edited-attachments.ts'
import { revisionHash } from '../revisions/revision-hash.ts'
import type { AttachmentRecord, DocumentEdit, ShardReplica } from '../contracts/shard-replica.ts'
import {
  assertFails, bytes, collect, context, documentEdit, revision, revisionFrom, revsLimit,
} from './replica-fixture.ts'
import type { ReplicaFixture } from './replica-fixture.ts'

/** The hash of a blob that no replica has. */
const unknownBlob = 'ab'.repeat(32)

export function blobCases(fixture: ReplicaFixture): void {
  describe('attachment content', () => {
    it('is written in chunks and read back whole or in part', async () => {
      const chunks = Array.from({ length: 40 }, (_, index) => Buffer.alloc(50_000, `chunk ${index} `))
      const whole = Buffer.concat(chunks)
      const written = await fixture.replica.blobs.writeBlob(stream(...chunks), context)
      assert.deepEqual(written, { hash: sha256(whole), length: whole.length })
      assert((await read(fixture.replica, written.hash)).equals(whole))
      assert((await read(fixture.replica, written.hash, 70_000, 1_500_001)).equals(whole.subarray(70_000, 1_500_001)))
      assert((await read(fixture.replica, written.hash, 1_999_990, 9_999_999)).equals(whole.subarray(1_999_990)))
      assert.equal((await read(fixture.replica, written.hash, 7, 7)).length, 0)
    })

    it('may be empty', async () => {
      const { hash, length } = await fixture.replica.blobs.writeBlob(stream(), context)
      assert.deepEqual({ hash, length }, { hash: sha256(Buffer.alloc(0)), length: 0 })
      assert.equal((await read(fixture.replica, hash)).length, 0)
    })

    it('is not stored when its source fails', async () => {
      const broken = new Error('the client went away')
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield bytes('half of it')
        throw broken
      }
      await assert.rejects(fixture.replica.blobs.writeBlob(failing(), context), error => error === broken)
      assert.deepEqual(await fixture.replica.blobs.hasBlobs([sha256(bytes('half of it'))], context), [false])
    })

    it('is found by its hash, and absent content is not', async () => {
      const { hash } = await fixture.replica.blobs.writeBlob(stream(bytes('here')), context)
      assert.deepEqual(await fixture.replica.blobs.hasBlobs([unknownBlob, hash], context), [false, true])
      assert.deepEqual(await fixture.replica.blobs.hasBlobs([], context), [])
      await assertFails(read(fixture.replica, unknownBlob), 'missing_blob')
    })

    it('can be read in part by a reader that stops early', async () => {
      const { hash } = await fixture.replica.blobs.writeBlob(stream(Buffer.alloc(3_000_000, 'x')), context)
      for await (const chunk of fixture.replica.blobs.readBlob({ hash, span: null }, context)) {
        assert(chunk.length > 0)
        break
      }
      assert.equal((await read(fixture.replica, hash)).length, 3_000_000)
    })

    it('is not written for a caller that has cancelled the call', async () => {
      const cancelled = { timeoutMs: 5000, signal: AbortSignal.abort() }
      await assertFails(fixture.replica.blobs.writeBlob(stream(bytes('x')), cancelled), 'cancelled')
    })
  })
}

export function attachmentCases(fixture: ReplicaFixture): void {
  describe('attachments', () => {
    it('are returned together with bodies by reads, rows and changes, and never without them', async () => {
      const attachments = [
        await store(fixture.replica, 'one', 'first'), await store(fixture.replica, 'a/ü', 'zweite', 'gzip'),
      ]
      await fixture.edit(editWith('doc', { n: 1 }, null, attachments))
      await fixture.write('bare')
      assert.deepEqual((await fixture.open('doc')).attachments, attachments)
      assert.equal((await fixture.open('bare')).attachments, undefined)
      const leaf = await fixture.replica.openDocument({ id: 'doc', body: false, tree: false }, context)
      assert.equal(leaf?.attachments, undefined)
      const rows = await collect(
        fixture.replica.scanDocuments({ descending: false, body: true, leaves: false }, context),
      )
      assert.deepEqual(rows.map(row => row.attachments), [undefined, attachments])
      const changes = await collect(
        fixture.replica.scanChanges({ since: 0, descending: false, body: true, locals: false }, context),
      )
      assert.deepEqual(changes.map(change => change.attachments), [attachments, undefined])
      const [opened] = await fixture.openRevisions('doc', 'leaves')
      assert.deepEqual(opened?.kind === 'found' && opened.revision.attachments, attachments)
    })

    it('belong to each revision', async () => {
      const first = await store(fixture.replica, 'f', 'one')
      const second = { ...await store(fixture.replica, 'f', 'two'), revpos: 2 }
      const one = revisionFrom(await fixture.edit(editWith('doc', {}, null, [first])))
      const two = revisionFrom(await fixture.edit(editWith('doc', {}, one, [second])))
      const three = await fixture.write('doc', {}, two)
      const found = await fixture.openRevisions('doc', [one, two, three])
      assert.deepEqual(found.map(each => each.kind === 'found' && each.revision.attachments), [
        [first], [second], undefined,
      ])
    })

    it('are refused, and nothing is written, when their content is absent', async () => {
      const known = await store(fixture.replica, 'f', 'known')
      const unknown = { ...known, blob: unknownBlob }
      await assertFails(fixture.edit(editWith('doc', {}, null, [known, unknown])), 'missing_blob')
      await assertFails(fixture.store({ ...revision('doc', 1, ['a']), attachments: [unknown] }), 'missing_blob')
      assert.equal(await fixture.replica.openDocument({ id: 'doc', body: true, tree: false }, context), null)
    })

    it('are stored with revisions from elsewhere when their content was written before', async () => {
      const attachment = await store(fixture.replica, 'f', 'content')
      await fixture.store({ ...revision('doc', 3, ['c', 'b', 'a']), attachments: [{ ...attachment, revpos: 2 }] })
      const [opened] = await fixture.openRevisions('doc', 'leaves')
      assert(opened?.kind === 'found')
      const other = await fixture.another()
      const content = fixture.replica.blobs.readBlob({ hash: attachment.blob, span: null }, context)
      await other.blobs.writeBlob(content, context)
      await other.storeRevisions({ revisions: [opened.revision], revsLimit }, context)
      assert.deepEqual((await fixture.open('doc', other)).attachments, [{ ...attachment, revpos: 2 }])
      assert.equal((await read(other, attachment.blob)).toString(), 'content')
    })

    it('of a revived document have the generation of its new revision', async () => {
      const first = await fixture.write('doc', { n: 1 })
      const tombstone = await fixture.delete('doc', first)
      const attachment = await store(fixture.replica, 'f', 'again')
      const revived = revisionFrom(await fixture.edit(editWith('doc', { n: 3 }, null, [attachment])))
      const expected = revisionHash({
        deleted: false, parent: tombstone, body: bytes('{"n":3}'), attachments: attachmentDigests([attachment]),
      })
      assert.equal(revived, `3-${expected}`)
      assert.equal((await fixture.open('doc')).attachments?.[0]?.revpos, 3)
    })

    it('may be many with long names', async () => {
      const base = await store(fixture.replica, 'f', 'shared')
      const attachments = Array.from(
        { length: 3000 }, (_, index) => ({ ...base, name: `${index} ${'long '.repeat(30)}` }),
      )
      await fixture.edit(editWith('doc', { much: 'x'.repeat(300_000) }, null, attachments))
      const snapshot = await fixture.open('doc')
      assert.deepEqual(snapshot.attachments, attachments)
      assert.equal(snapshot.body?.length, 300_011)
    })
  })
}

/** Writes the content as a blob and returns an attachment record of generation 1. */
async function store(
  replica: ShardReplica, name: string, content: string, encoding: AttachmentRecord['encoding'] = 'identity',
): Promise<AttachmentRecord> {
  const { hash, length } = await replica.blobs.writeBlob(stream(bytes(content)), context)
  const digest = createHash('md5').update(content).digest('base64')
  return { name, contentType: 'text/x', revpos: 1, digest, blob: hash, length, encoding, storedLength: length }
}

function editWith(
  id: string, value: unknown, parent: string | null, attachments: readonly AttachmentRecord[],
): DocumentEdit {
  const edit = documentEdit(id, value, parent)
  return {
    ...edit, attachments,
    revisionHash: revisionHash({
      deleted: false, parent, body: edit.body, attachments: attachmentDigests(attachments),
    }),
  }
}

async function* stream(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

async function read(replica: ShardReplica, hash: string, start?: number, end?: number): Promise<Buffer> {
  const span = start === undefined || end === undefined ? null : { start, end }
  const chunks: Uint8Array[] = []
  for await (const chunk of replica.blobs.readBlob({ hash, span }, context)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
