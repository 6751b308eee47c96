/** Draws requests and replies of the calls between nodes, and messages of the consensus, with values in all fields. */
import type { GroupPlace, RowBound, ScannedPlace } from '../contracts/index-replica/index-rows.ts'
import type { IndexDefinition } from '../contracts/index-replica/index-definition.ts'
import type { IndexHead, IndexState } from '../contracts/index-replica/index-state.ts'
import type { IndexRead, indexVerbs } from '../contracts/index-replica.ts'
import { nodeQuestions } from '../contracts/peer-network.ts'
import type { controlVerbs, LogEntry, RaftMessage, shardPeerVerbs } from '../contracts/peer-network.ts'
import type { blobVerbs } from '../contracts/shard-replica/blob-verbs.ts'
import type { changeVerbs, ReplicaCheckpoint, TrailExtension } from '../contracts/shard-replica/change-verbs.ts'
import type {
  AttachmentRecord, DocumentRevision, Leaf, RevisionPath,
} from '../contracts/shard-replica/document-revision.ts'
import { attemptMax } from '../contracts/shard-replica/document-verbs.ts'
import type { Branch, documentVerbs } from '../contracts/shard-replica/document-verbs.ts'
import type { IdBound, IdScan } from '../contracts/shard-replica/id-scan.ts'
import type { LocalDocument, localDocumentVerbs } from '../contracts/shard-replica/local-document-verbs.ts'
import type { Purge, purgeVerbs } from '../contracts/shard-replica/purge-verbs.ts'
import type { upkeepVerbs } from '../contracts/shard-replica/upkeep-verbs.ts'
import type { Verb, VerbNames } from '../contracts/verb-table.ts'
import type { DrawnValues } from './drawn-values.ts'

/** Draws a request of a verb, and its reply, row or chunk. */
type DrawsOf<V> = V extends Verb<infer Shape, infer Request, infer Reply>
  ? Shape extends 'upload'
    ? { readonly reply: (values: DrawnValues) => Reply }
    : { readonly request: (values: DrawnValues) => Request; readonly reply: (values: DrawnValues) => Reply }
  : never

type Draws<Table> = { readonly [Name in keyof Table]: DrawsOf<Table[Name]> }

/** What the drawing of one verb has in common with that of the others. Uploads have no request. */
export interface DrawnVerb {
  readonly request?: (values: DrawnValues) => unknown
  readonly reply: (values: DrawnValues) => unknown
}

const path = (d: DrawnValues): RevisionPath => ({ start: d.count(), ids: d.list(() => d.word(), 1) })
const leaf = (d: DrawnValues): Leaf => ({ revision: d.word(), deleted: d.flag() })
const leaves = (d: DrawnValues): Leaf[] => d.list(() => leaf(d), 1)
const checkpoint = (d: DrawnValues): ReplicaCheckpoint => ({ history: d.text(), sequence: d.count() })
const attempt = (d: DrawnValues): number | undefined => d.maybe(() => d.of(1, 2 ** 32, attemptMax, 1 + d.short()))

const attachment = (d: DrawnValues): AttachmentRecord => ({
  name: d.word(), contentType: d.text(), revpos: d.count(), digest: d.digest(), blob: d.hash(), length: d.count(),
  encoding: d.of('identity', 'gzip'), storedLength: d.count(),
})
const attachments = (d: DrawnValues): AttachmentRecord[] | undefined => d.some(() => attachment(d))

/** The body of a row may be left out, and its attachments then too. */
const content = (d: DrawnValues): { readonly body?: Uint8Array; readonly attachments?: readonly AttachmentRecord[] } =>
  d.maybe(() => ({ body: d.bytes(), attachments: attachments(d) })) ?? {}

const revision = (d: DrawnValues): DocumentRevision => ({
  id: d.word(), path: path(d), deleted: d.flag(), body: d.bytes(), attachments: attachments(d),
  purges: d.some(() => d.word()), attempt: attempt(d),
})

const local = (d: DrawnValues): LocalDocument => (
  { id: d.word(), revision: d.count(), stamp: d.count(), body: d.nullable(() => d.bytes()) })

const purge = (d: DrawnValues): Purge => ({ uuid: d.word(), id: d.word(), paths: d.list(() => path(d)) })

const branch = (d: DrawnValues): Branch => {
  const drawn = path(d)
  const flags = (): boolean[] => drawn.ids.map(() => d.flag())
  return { path: drawn, deleted: d.flag(), available: flags(), tombstones: flags() }
}

const trail = (d: DrawnValues): TrailExtension => {
  const own = d.list(() => d.count()).sort((a, b) => a - b)
  return {
    history: d.text(), base: { theirs: d.count(), own: d.count() },
    points: own.map(at => ({ theirs: d.count(), own: at })),
  }
}

const bound = (d: DrawnValues): IdBound => ({ id: d.text(), inclusive: d.flag() })
const scan = (d: DrawnValues): IdScan => ({
  start: d.maybe(() => bound(d)), end: d.maybe(() => bound(d)), descending: d.flag(), limit: d.maybe(() => d.short()),
})

const documents: Draws<typeof documentVerbs> = {
  openDocument: {
    request: d => ({ id: d.word(), body: d.flag(), tree: d.flag() }),
    reply: d => d.of(true, true, false)
      ? { leaves: leaves(d), sequence: d.count(), ...content(d), tree: d.maybe(() => d.list(() => branch(d))) } : null,
  },
  openRevisions: {
    request: d => d.list(() => ({
      id: d.word(), revisions: d.form(() => 'leaves' as const, () => d.list(() => d.word())),
      latest: d.flag(),
    })),
    reply: d => d.list(() => d.list(() => d.form(
      () => ({ kind: 'found' as const, revision: revision(d) }),
      () => ({ kind: 'missing' as const, revision: d.word() }),
    ))),
  },
  updateDocuments: {
    request: d => ({
      edits: d.list(() => ({
        id: d.word(), parent: d.nullable(() => d.word()), deleted: d.flag(), body: d.bytes(), revisionHash: d.word(),
        attachments: attachments(d), attempt: attempt(d), revives: d.maybe(() => d.nullable(() => d.word())),
      })),
      revsLimit: d.short(), partitionBytesMax: d.maybe(() => d.count()), force: d.mark(),
    }),
    reply: d => d.of(true, true, false) ? {
      kind: 'decided',
      outcomes: d.list(() => d.form(
        () => ({ kind: 'updated' as const, path: path(d), purges: d.some(() => d.word()) }),
        () => ({ kind: 'partition_overflow' as const }), () => ({ kind: 'conflict' as const }),
        () => ({ kind: 'tombstone' as const, revision: d.word() }),
      )),
    } : { kind: 'declined' },
  },
  storeRevisions: {
    request: d => ({
      revisions: d.list(() => revision(d)), locals: d.some(() => local(d)), revsLimit: d.short(),
      checkpoint: d.maybe(() => checkpoint(d)), trail: d.maybe(() => trail(d)), missed: d.mark(), external: d.mark(),
    }),
    reply: d => ({ rivals: d.list(() => d.short()), refused: d.some(() => d.short()) }),
  },
  diffRevisions: {
    request: d => d.list(() => ({ id: d.word(), revisions: d.list(() => d.word()) })),
    reply: d => d.list(() => ({
      id: d.word(), missing: d.list(() => d.word()), possibleAncestors: d.list(() => d.word()), sequence: d.count(),
      otherLeaves: d.flag(),
    })),
  },
  scanDocuments: {
    request: d => ({ ...scan(d), body: d.flag(), leaves: d.flag() }),
    reply: d => ({ id: d.word(), revision: d.word(), ...content(d), leaves: d.maybe(() => leaves(d)) }),
  },
  countDocuments: {
    request: d => ({ before: d.maybe(() => bound(d)), descending: d.flag() }),
    reply: d => d.count(),
  },
}

const changes: Draws<typeof changeVerbs> = {
  scanChanges: {
    request: d => ({
      history: d.maybe(() => d.text()), since: d.count(), descending: d.flag(), limit: d.maybe(() => d.short()),
      body: d.flag(), locals: d.flag(), purges: d.mark(),
    }),
    reply: d => ({
      sequence: d.count(), id: d.word(), leaves: d.list(() => leaf(d)), ...content(d), local: d.mark(),
      purged: d.mark(),
    }),
  },
  countChanges: { request: d => d.count(), reply: d => d.count() },
  waitForChange: { request: checkpoint, reply: checkpoint },
  translateCheckpoints: { request: d => d.list(() => checkpoint(d)), reply: d => d.count() },
  timeSpans: {
    request: d => ({ clear: d.flag() }), reply: d => d.list(() => ({ begin: d.count(), sequence: d.count() })),
  },
}

const locals: Draws<typeof localDocumentVerbs> = {
  openLocalDocuments: { request: d => d.list(() => d.word()), reply: d => d.list(() => d.nullable(() => local(d))) },
  updateLocalDocument: {
    request: d => (
      { id: d.word(), revision: d.count(), body: d.nullable(() => d.bytes()), mustExist: d.flag() }),
    reply: d => d.of(true, true, false) ? { kind: 'updated', document: local(d) } : { kind: 'missing' },
  },
  scanLocalDocuments: { request: scan, reply: local },
}

const purges: Draws<typeof purgeVerbs> = {
  purgeDocuments: {
    request: d => ({ purges: d.list(() => purge(d)), checkpoint: d.maybe(() => checkpoint(d)) }),
    reply: d => d.list(() => d.list(() => d.word())),
  },
  scanPurges: { request: d => d.count(), reply: d => ({ ...purge(d), sequence: d.count() }) },
  trimPurges: { request: d => d.count(), reply: () => undefined },
}

const blobs: Draws<typeof blobVerbs> = {
  writeBlob: { reply: d => ({ hash: d.hash(), length: d.count() }) },
  readBlob: {
    request: d => ({ hash: d.hash(), span: d.nullable(() => ({ start: d.count(), end: d.count() })) }),
    reply: d => d.bytes(),
  },
  hasBlobs: { request: d => d.list(() => d.hash()), reply: d => d.list(() => d.flag()) },
}

const upkeep: Draws<typeof upkeepVerbs> = {
  replicaInfo: {
    request: () => undefined,
    reply: d => ({
      history: d.text(), sequence: d.count(), documentCount: d.count(), deletedCount: d.count(),
      purgeSequence: d.count(), oldestPurge: d.count(), purgesSeen: d.counts(), compacting: d.flag(),
      sizes: { file: d.count(), active: d.count(), external: d.count() }, seen: d.counts(), catchingUp: d.flag(),
    }),
  },
  partitionInfo: {
    request: d => d.text(),
    reply: d => (
      { documentCount: d.count(), deletedCount: d.count(), sizes: { active: d.count(), external: d.count() } }),
  },
  compactShard: { request: () => undefined, reply: () => undefined },
  digestDocuments: { request: d => d.short(), reply: d => d.list(() => d.text()) },
  scanDigestBucket: {
    request: d => ({ bucketCount: d.short(), bucket: d.short() }),
    reply: d => ({ id: d.word(), leaves: d.list(() => leaf(d)) }),
  },
}

const place = (d: DrawnValues, range: number): ScannedPlace => (
  { range, key: d.key(), id: d.text(), number: d.short() })
const state = (d: DrawnValues): IndexState => (
  { position: checkpoint(d), readSequence: d.count(), version: d.text(), rowCount: d.count() })
const head = (d: DrawnValues): IndexHead => ({ kind: 'head', ...state(d), rowsBefore: d.count() })
const rowBound = (d: DrawnValues): RowBound => ({ key: d.key(), id: d.maybe(() => d.text()), inclusive: d.flag() })
const through = (d: DrawnValues): number | 'newest' => d.form(() => 'newest' as const, () => d.count())
const definition = (d: DrawnValues): IndexDefinition => ({
  kind: d.text(), map: d.text(), reduce: d.nullable(() => d.text()),
  options: Object.fromEntries(d.list(() => [d.word(), d.form(() => d.text(), () => d.flag())])),
})

const read = <Place>(d: DrawnValues, drawPlace: (range: number) => Place): IndexRead<Place> => {
  const ranges = d.list(() => ({ lower: d.maybe(() => rowBound(d)), upper: d.maybe(() => rowBound(d)) }))
  return {
    index: d.text(), through: through(d), ranges, descending: d.flag(), limit: d.maybe(() => d.short()),
    after: ranges.length === 0 ? undefined : d.maybe(() => drawPlace(ranges.length - 1)),
    skip: d.maybe(() => 1 + d.short()),
  }
}

const indexes: Draws<typeof indexVerbs> = {
  buildIndex: {
    request: d => ({ definition: definition(d), through: through(d), waitMs: d.of(0, 0.5, d.count()) }),
    reply: d => ({ ...state(d), through: d.count() }),
  },
  scanIndex: {
    request: d => read(d, range => place(d, range)),
    reply: d => d.form(
      () => head(d), () => ({ kind: 'row' as const, ...place(d, d.short()), value: d.bytes() }),
    ),
  },
  reduceIndex: {
    request: d => ({
      ...read<GroupPlace>(d, range => ({ range, group: d.key() })),
      groupLevel: d.form(() => 'exact' as const, () => d.short()),
    }),
    reply: d => d.form(
      () => head(d), () => ({ kind: 'group' as const, range: d.short(), group: d.key(), value: d.bytes() }),
    ),
  },
  find: {
    request: d => {
      const { index, through: required, ranges, after } = read(d, range => place(d, range))
      return {
        selector: d.text(), after, descending: d.flag(), limit: d.maybe(() => d.short()),
        source: d.form(
          () => ({
            kind: 'index' as const, index, through: required, ranges,
            within: d.maybe(() => ({ index: d.text(), key: d.key() })),
          }),
          () => ({ kind: 'documents' as const, start: d.maybe(() => bound(d)), end: d.maybe(() => bound(d)) }),
        ),
        documents: d.of('none', 'winner', 'leaves'), countOnly: d.mark(), aggregate: d.maybe(() => d.text()),
        isExact: d.mark(),
      }
    },
    reply: d => d.form(
      () => head(d),
      () => ({
        kind: 'progress' as const, ...place(d, d.short()), keysExamined: d.count(), documentsExamined: d.count(),
        matches: d.count(), groups: d.maybe(() => d.bytes()),
      }),
      () => ({
        kind: 'found' as const, ...place(d, d.short()), value: d.bytes(), revision: d.maybe(() => d.text()),
        ...content(d), leaves: d.maybe(() => leaves(d)),
      }),
    ),
  },
  indexInfo: {
    request: d => d.text(),
    reply: d => ({
      ...state(d), definition: definition(d), building: d.flag(), waiting: d.count(), failedCount: d.count(),
      failures: d.list(() => ({ id: d.text(), error: d.text() })),
      sizes: { file: d.count(), active: d.count(), external: d.count() },
    }),
  },
  dropIndexes: { request: d => ({ except: d.list(() => d.text()) }), reply: () => undefined },
}

const control: Draws<typeof controlVerbs> = {
  status: {
    request: () => undefined,
    reply: d => ({
      node: d.text(), address: d.text(), clusterId: d.nullable(() => d.text()), fresh: d.flag(),
      leader: d.nullable(() => d.text()),
    }),
  },
  join: {
    request: d => ({ node: d.text(), address: d.text(), zone: d.nullable(() => d.text()) }),
    reply: d => d.form(
      () => ({ kind: 'admitted' as const, clusterId: d.text() }),
      () => ({ kind: 'refused' as const, reason: d.text() }),
      () => ({ kind: 'outdated' as const }), () => ({ kind: 'try-later' as const, leader: d.nullable(() => d.text()) }),
    ),
  },
  propose: {
    request: d => d.json(),
    reply: d => d.form(
      () => ({ kind: 'applied' as const, index: d.count(), result: d.maybe(() => d.json()) }),
      () => ({ kind: 'not-leader' as const, leader: d.nullable(() => d.text()) }),
      () => ({ kind: 'timeout' as const }),
    ),
  },
  ask: {
    request: d => ({ question: d.of(...nodeQuestions), argument: d.maybe(() => d.json()) }), reply: d => d.json(),
  },
  designChanged: { request: d => d.text(), reply: () => undefined },
}

export const drawnShardVerbs: Readonly<Record<VerbNames<typeof shardPeerVerbs>, DrawnVerb>> = {
  ...documents, ...changes, ...locals, ...purges, ...blobs, ...upkeep, ...indexes,
}

export const drawnControlVerbs: Readonly<Record<VerbNames<typeof controlVerbs>, DrawnVerb>> = control

const entry = (d: DrawnValues): LogEntry => (
  { index: d.count(), term: d.count(), kind: d.of('command', 'configuration', 'noop'), payload: d.bytes() })

/** Draws a message of each type. */
export function drawnRaftMessages(
  d: DrawnValues, address: () => Pick<RaftMessage, 'from' | 'to' | 'term'>,
): readonly RaftMessage[] {
  return [
    { ...address(), type: 'vote-request', lastIndex: d.count(), lastTerm: d.count(), preVote: d.flag() },
    { ...address(), type: 'vote-reply', granted: d.flag(), preVote: d.flag() },
    {
      ...address(), type: 'append', previousIndex: d.count(), previousTerm: d.count(), commit: d.count(),
      entries: d.list(() => entry(d)), round: d.count(),
    },
    {
      ...address(), type: 'append-reply', success: d.flag(), matchIndex: d.count(), conflictIndex: d.count(),
      round: d.count(),
    },
    {
      ...address(), type: 'snapshot', index: d.count(), snapshotTerm: d.count(),
      configuration: { voters: d.list(() => d.word()), learners: d.list(() => d.word()) }, state: d.bytes(),
      offset: d.count(), totalBytes: d.count(), checksum: d.nullable(() => d.short()), round: d.count(),
    },
    { ...address(), type: 'snapshot-reply', index: d.count(), received: d.count(), round: d.count() },
  ]
}
