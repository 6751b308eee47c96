import assert from 'node:assert/strict'
import fc from 'fast-check'
import { attemptMax } from '@sectional/core'
import type {
  AttachmentRecord, Branch, ChangeRow, CountDocumentsRequest, DocumentEdit, DocumentLeaves, DocumentRevision,
  DocumentRow, DocumentSnapshot, EditOutcome, IdBound, Leaf, LocalDocument, OpenDocumentRequest, OpenedRevision,
  OpenRevisionsRequest, PartitionInfo, Purge, PurgeDocumentsRequest, PurgeRow, ReadBlobRequest, ReplicaCheckpoint,
  ReplicaDiff, ReplicaInfo, RevisionPath, ScanChangesRequest, ScanDigestBucketRequest, ScanDocumentsRequest,
  ScanLocalDocumentsRequest, StoreRevisionsReply, StoreRevisionsRequest, TimeSpan, TrailExtension, TrailPoint,
  UpdateDocumentsRequest, UpdateLocalDocumentRequest, WrittenBlob,
} from '@sectional/core'
import { shardCodecs } from '../../src/shard/shard-codecs.ts'
import { bytes, count, kindsOf, received, record, sent, text, uint, type VerbValues } from '../codec-kinds.ts'

const flag = fc.boolean()
const always = fc.constant(true as const)
const named = fc.string({ unit: 'binary', minLength: 1, maxLength: 10 })
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(each => Buffer.from(each).toString('hex'))
const digest = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(each => Buffer.from(each).toString('base64'))
const attempt = fc.integer({ min: 1, max: attemptMax })

function some<T>(each: fc.Arbitrary<T>): fc.Arbitrary<T[]> { return fc.array(each, { maxLength: 3 }) }

/** Lists that are absent when they are empty. */
function any<T>(each: fc.Arbitrary<T>): fc.Arbitrary<T[]> { return fc.array(each, { minLength: 1, maxLength: 3 }) }

const path = record<RevisionPath>({ start: count, ids: some(text) })
const leaf = record<Leaf>({ revision: text, deleted: flag })
const attachments = any(record<AttachmentRecord>({
  name: text, contentType: text, revpos: count, digest, blob: hash, length: count,
  encoding: fc.constantFrom('identity', 'gzip'), storedLength: count,
}))
const revision = record<DocumentRevision>({
  id: text, path, deleted: flag, body: bytes, attachments, purges: any(text), attempt,
}, 'attachments', 'purges', 'attempt')
const local = record<LocalDocument>({ id: text, revision: count, stamp: count, body: fc.option(bytes) })
const bound = record<IdBound>({ id: text, inclusive: flag })
const checkpoint = record<ReplicaCheckpoint>({ history: text, sequence: count })
const point = record<TrailPoint>({ theirs: count, own: count })
const trail = record<TrailExtension>({
  history: text, base: point, points: some(point).map(points => points.toSorted((a, b) => a.own - b.own)),
})
const branch = some(fc.tuple(text, flag, flag)).chain(each => record<Branch>({
  path: record<RevisionPath>({ start: count, ids: fc.constant(each.map(([id]) => id)) }), deleted: flag,
  available: fc.constant(each.map(([, available]) => available)),
  tombstones: fc.constant(each.map(([,, tombstone]) => tombstone)),
}))
const edit = record<DocumentEdit>({
  id: text, parent: fc.option(text), deleted: flag, body: bytes, revisionHash: text, attachments, attempt,
  revives: fc.option(named),
}, 'attachments', 'attempt', 'revives')
const outcome: fc.Arbitrary<EditOutcome> = fc.oneof(
  record<EditOutcome & { kind: 'updated' }>({ kind: fc.constant('updated'), path, purges: any(text) }, 'purges'),
  record<EditOutcome & { kind: 'tombstone' }>({ kind: fc.constant('tombstone'), revision: named }),
  fc.constantFrom<EditOutcome>({ kind: 'partition_overflow' }, { kind: 'conflict' }),
)
const opened: fc.Arbitrary<OpenedRevision> = fc.oneof(
  record<OpenedRevision & { kind: 'found' }>({ kind: fc.constant('found'), revision }),
  record<OpenedRevision & { kind: 'missing' }>({ kind: fc.constant('missing'), revision: text }),
)
const purge = { uuid: text, id: text, paths: some(path) }
const seen = fc.dictionary(text, count, { maxKeys: 3, noNullPrototype: true })

const documents = {
  openDocument: {
    request: record<OpenDocumentRequest>({ id: text, body: flag, tree: flag }),
    reply: fc.option(record<DocumentSnapshot>(
      { leaves: any(leaf), sequence: count, body: bytes, attachments, tree: some(branch) },
      'body', 'attachments', 'tree',
    )),
  },
  openRevisions: {
    request: some(record<OpenRevisionsRequest>({
      id: text, revisions: fc.oneof(some(text), fc.constant('leaves' as const)), latest: flag,
    })),
    reply: some(some(opened)),
  },
  updateDocuments: {
    request: record<UpdateDocumentsRequest>(
      { edits: some(edit), revsLimit: uint, partitionBytesMax: count, force: always }, 'partitionBytesMax', 'force',
    ),
    reply: fc.oneof(
      record({ kind: fc.constant('decided'), outcomes: some(outcome) }), fc.constant({ kind: 'declined' }),
    ),
  },
  storeRevisions: {
    request: record<StoreRevisionsRequest>({
      revisions: some(revision), locals: any(local), revsLimit: uint, checkpoint, trail, external: always,
      missed: always,
    }, 'locals', 'checkpoint', 'trail', 'external', 'missed'),
    reply: record<StoreRevisionsReply>({ rivals: some(uint), refused: any(uint) }, 'refused'),
  },
  diffRevisions: {
    request: some(record({ id: text, revisions: some(text) })),
    reply: some(record<ReplicaDiff>({
      id: text, missing: some(text), possibleAncestors: some(text), sequence: count, otherLeaves: flag,
    })),
  },
  scanDocuments: {
    request: record<ScanDocumentsRequest>(
      { start: bound, end: bound, descending: flag, limit: uint, body: flag, leaves: flag }, 'start', 'end', 'limit',
    ),
    rows: record<DocumentRow>(
      { id: text, revision: text, body: bytes, attachments, leaves: some(leaf) }, 'body', 'attachments', 'leaves',
    ),
  },
  countDocuments: {
    request: record<CountDocumentsRequest>({ before: bound, descending: flag }, 'before'), reply: count,
  },
}

const changes = {
  scanChanges: {
    request: record<ScanChangesRequest>({
      history: text, since: count, descending: flag, limit: uint, body: flag, locals: flag, purges: always,
    }, 'history', 'limit', 'purges'),
    rows: record<ChangeRow>({
      sequence: count, id: text, leaves: some(leaf), body: bytes, attachments, local: always, purged: always,
    }, 'body', 'attachments', 'local', 'purged'),
  },
  countChanges: { request: count, reply: count },
  waitForChange: { request: checkpoint, reply: checkpoint },
  translateCheckpoints: { request: some(checkpoint), reply: count },
  timeSpans: { request: record({ clear: flag }), reply: some(record<TimeSpan>({ begin: count, sequence: count })) },
}

const localDocuments = {
  openLocalDocuments: { request: some(text), reply: some(fc.option(local)) },
  updateLocalDocument: {
    request: record<UpdateLocalDocumentRequest>({
      id: text, revision: count, body: fc.option(bytes), mustExist: flag,
    }),
    reply: fc.oneof(
      record({ kind: fc.constant('updated'), document: local }), fc.constant({ kind: 'missing' }),
    ),
  },
  scanLocalDocuments: {
    request: record<ScanLocalDocumentsRequest>(
      { start: bound, end: bound, descending: flag, limit: uint }, 'start', 'end', 'limit',
    ),
    rows: local,
  },
}

const purges = {
  purgeDocuments: {
    request: record<PurgeDocumentsRequest>({ purges: some(record<Purge>(purge)), checkpoint }, 'checkpoint'),
    reply: some(some(text)),
  },
  scanPurges: { request: count, rows: record<PurgeRow>({ ...purge, sequence: count }) },
  trimPurges: { request: count },
}

const blobs = {
  writeBlob: { reply: record<WrittenBlob>({ hash, length: count }) },
  readBlob: {
    request: record<ReadBlobRequest>({ hash, span: fc.option(record({ start: count, end: count })) }),
    rows: bytes,
  },
  hasBlobs: { request: some(hash), reply: some(flag) },
}

const upkeep = {
  replicaInfo: {
    reply: record<ReplicaInfo>({
      history: text, sequence: count, documentCount: count, deletedCount: count, purgeSequence: count,
      oldestPurge: count, purgesSeen: seen, compacting: flag, seen, catchingUp: flag,
      sizes: record({ file: count, active: count, external: count }),
    }),
  },
  partitionInfo: {
    request: text,
    reply: record<PartitionInfo>({
      documentCount: count, deletedCount: count, sizes: record({ active: count, external: count }),
    }),
  },
  compactShard: {},
  digestDocuments: { request: uint, reply: some(text) },
  scanDigestBucket: {
    request: record<ScanDigestBucketRequest>({ bucketCount: uint, bucket: uint }),
    rows: record<DocumentLeaves>({ id: text, leaves: some(leaf) }),
  },
}

const verbs: { readonly [Name in keyof typeof shardCodecs]: VerbValues } = {
  ...documents, ...changes, ...localDocuments, ...purges, ...blobs, ...upkeep,
}

describe('the codecs of shards', () => {
  for (const [name, kind] of kindsOf(shardCodecs, verbs)) {
    it(`transmit ${name} unchanged`, () => {
      fc.assert(fc.property(kind.values, each => { assert.deepEqual(received(kind, sent(kind, each)), each) }))
    })
  }
})
