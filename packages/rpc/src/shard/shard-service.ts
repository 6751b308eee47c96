import { ReplicaError } from '@sectional/core'
import type { CallContext, ShardId, ShardReplica } from '@sectional/core'
import type { Answer, Work } from '../link/calls-served.ts'
import { PayloadWriter } from '../schema/payload.ts'
import type { PayloadReader } from '../schema/payload.ts'
import { required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { StreamVerb, Verb } from '../schema/verb.ts'
import { decodeShard } from './document-codec.ts'
import * as scans from './scan-verbs.ts'
import * as verbs from './shard-verbs.ts'
import * as upkeep from './upkeep-verbs.ts'

/** What a row counts besides its body, so that pages of rows without bodies are bounded too: about its header. */
const rowOverheadBytes = 128

const blobPageBytes = 192 * 1024

type Prepare = (message: WireMessage, payload: PayloadReader, replica: ShardReplica, pageBytes: number) => Work

/** How every shard verb is served: the closed set. */
const servedVerbs: ReadonlyMap<string, Prepare> = new Map([
  once(verbs.openDocument, (replica, request, context) => replica.openDocument(request, context)),
  once(verbs.openRevisions, (replica, request, context) => replica.openRevisions(request, context)),
  once(verbs.updateDocuments, (replica, request, context) => replica.updateDocuments(request, context)),
  once(verbs.storeRevisions, (replica, request, context) => replica.storeRevisions(request, context)),
  once(verbs.diffRevisions, (replica, request, context) => replica.diffRevisions(request, context)),
  once(verbs.countDocuments, (replica, request, context) => replica.countDocuments(request, context)),
  once(verbs.countChanges, (replica, since, context) => replica.countChanges(since, context)),
  once(verbs.waitForChange, (replica, seen, context) => replica.waitForChange(seen, context)),
  once(verbs.translateCheckpoints, (replica, read, context) => replica.translateCheckpoints(read, context)),
  once(verbs.openLocalDocuments, (replica, ids, context) => replica.openLocalDocuments(ids, context)),
  once(verbs.updateLocalDocument, (replica, request, context) => replica.updateLocalDocument(request, context)),
  once(verbs.hasBlobs, (replica, hashes, context) => replica.hasBlobs(hashes, context)),
  upload(verbs.writeBlob, (replica, chunks, context) => replica.writeBlob(chunks, context)),
  paged(scans.readBlob, (replica, { hash, span }, context) => blobPages(replica.readBlob(hash, span, context))),
  once(verbs.replicaInfo, (replica, _request, context) => replica.replicaInfo(context)),
  once(verbs.digestDocuments, (replica, bucketCount, context) => replica.digestDocuments(bucketCount, context)),
  once(upkeep.purgeDocuments, (replica, request, context) => replica.purgeDocuments(request, context)),
  once(upkeep.trimPurges, (replica, sequence, context) => replica.trimPurges(sequence, context)),
  once(upkeep.partitionInfo, (replica, partition, context) => replica.partitionInfo(partition, context)),
  once(upkeep.compactShard, (replica, _request, context) => replica.compactShard(context)),
  once(upkeep.timeSpans, (replica, request, context) => replica.timeSpans(request, context)),
  paged(upkeep.scanPurges, (replica, since, context) => replica.scanPurges(since, context)),
  paged(scans.scanDocuments, (replica, request, context) => replica.scanDocuments(request, context)),
  paged(scans.scanChanges, (replica, request, context) => replica.scanChanges(request, context)),
  paged(scans.scanLocalDocuments, (replica, request, context) => replica.scanLocalDocuments(request, context)),
  paged(scans.scanDigestBucket, (replica, { bucketCount, bucket }, context) => replica.scanDigestBucket(bucketCount, bucket, context)),
])

/**
 * Serves a shard verb on the local replica; undefined: no shard verb.
 * @throws ProtocolError when the request is malformed, ReplicaError `not_hosted`
 */
export function prepareShardCall(
  call: WireMessage, payload: PayloadReader, replica: (shard: ShardId) => ShardReplica | undefined, pageBytes: number,
): Work | undefined {
  const prepare = servedVerbs.get(call.verb)
  if (!prepare) return undefined
  const shard = decodeShard(required(call.shard, 'shard'))
  const hosted = replica(shard)
  if (!hosted) {
    throw new ReplicaError('not_hosted', `this node has no replica of shard ${shard.range.begin}-${shard.range.end} of ${shard.incarnation}`)
  }
  return prepare(call[call.verb], payload, hosted, pageBytes)
}

function once<Request, Reply>(
  verb: Verb<Request, Reply>, act: (replica: ShardReplica, request: Request, context: CallContext) => Promise<Reply>,
): readonly [string, Prepare] {
  return [verb.name, (message, payload, replica) => {
    const request = verb.decodeRequest(message, payload)
    payload.finish()
    return {
      kind: 'reply',
      run: async context => {
        const reply = await act(replica, request, context)
        const answer = new PayloadWriter()
        return { fields: { [verb.name]: verb.encodeReply(reply, answer) }, payload: answer }
      },
    }
  }]
}

function upload<Reply>(
  verb: Verb<void, Reply>, act: (replica: ShardReplica, chunks: AsyncIterable<Uint8Array>, context: CallContext) => Promise<Reply>,
): readonly [string, Prepare] {
  return [verb.name, (_message, payload, replica) => {
    payload.finish()
    return {
      kind: 'upload',
      run: async (context, chunks) => {
        const reply = await act(replica, chunks, context)
        const answer = new PayloadWriter()
        return { fields: { [verb.name]: verb.encodeReply(reply, answer) }, payload: answer }
      },
    }
  }]
}

/** Several chunks of a file in a page: fewer messages and grants. */
async function* blobPages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Uint8Array[]> {
  let page: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    page.push(chunk)
    bytes += chunk.length
    if (bytes < blobPageBytes) continue
    yield page
    page = []
    bytes = 0
  }
  if (page.length > 0) yield page
}

function paged<Request, Row>(
  verb: StreamVerb<Request, Row>, act: (replica: ShardReplica, request: Request, context: CallContext) => AsyncIterable<readonly Row[]>,
): readonly [string, Prepare] {
  return [verb.name, (message, payload, replica, pageBytes) => {
    const request = verb.decodeRequest(message)
    payload.finish()
    return { kind: 'pages', run: context => encodePages(verb, act(replica, request, context), pageBytes) }
  }]
}

/** The replica's pages, cut where they grow over `pageBytes`. */
async function* encodePages<Row>(verb: StreamVerb<unknown, Row>, pages: AsyncIterable<readonly Row[]>, pageBytes: number): AsyncGenerator<Answer> {
  for await (const page of pages) {
    let rows: object[] = []
    let payload = new PayloadWriter()
    for (const row of page) {
      rows.push(verb.encodeRow(row, payload))
      if (payload.bytes + rows.length * rowOverheadBytes < pageBytes) continue
      yield { fields: { [verb.rows]: { rows } }, payload }
      rows = []
      payload = new PayloadWriter()
    }
    if (rows.length > 0) yield { fields: { [verb.rows]: { rows } }, payload }
  }
}
