import { mapVerbs, ReplicaError, shardVerbs } from '@sectional/core'
import type { ShardId, ShardReplica } from '@sectional/core'
import type { CallClass } from '../link/call-budget.ts'
import type { Work } from '../link/calls-served.ts'
import { serveCall, servePages, serveUpload } from '../link/served-work.ts'
import type { ReceivedRequest } from '../link/served-work.ts'
import type { CallCodec, PagesCodec } from '../schema/codec.ts'
import { PayloadReader } from '../schema/payload.ts'
import { required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeShard } from './record-codec.ts'
import { shardCodecs } from './shard-codecs.ts'

const blobPageBytes = 192 * 1024

/** Serves the calls of one verb on this node. */
interface ServedVerb {
  /** Returns the class of a call with this request. @throws ProtocolError when the request is malformed */
  classOf(message: WireMessage): CallClass
  /** @throws ProtocolError when the request is malformed */
  prepare(received: ReceivedRequest, replica: ShardReplica, pageBytes: number): Work
}

const data = (): CallClass => 'data'

/** The shard verbs, by name, with the functions that serve them. A call of another verb is refused. */
const servedVerbs: ReadonlyMap<string, ServedVerb> = mapVerbs<typeof shardVerbs, ServedVerb>(shardVerbs, {
  call: ({ name, waits, invoke }) => {
    const codec: CallCodec<unknown, unknown> = shardCodecs[name]
    return {
      classOf: waits === undefined ? data : message => waits(decodeMessage(codec, message)) ? 'wait' : 'data',
      prepare: (received, replica) => (
        serveCall(name, codec, received, (request, context) => invoke(replica, request, context))),
    }
  },
  upload: ({ name, invoke }) => ({
    classOf: data,
    prepare: (received, replica) => (
      serveUpload(name, shardCodecs[name], received, (chunks, context) => invoke(replica, chunks, context))),
  }),
  pages: ({ name, invoke }) => {
    const codec: PagesCodec<unknown, unknown> = shardCodecs[name]
    return {
      classOf: data,
      prepare: (received, replica, pageBytes) => (
        servePages(codec, received, pageBytes, (request, context) => invoke(replica, request, context))),
    }
  },
  download: ({ name, invoke }) => {
    const codec: PagesCodec<unknown, Uint8Array> = shardCodecs[name]
    return {
      classOf: data,
      prepare: (received, replica, pageBytes) => (
        servePages(codec, received, pageBytes, (request, context) => chunkPages(invoke(replica, request, context)))),
    }
  },
})

/** Decodes a request without a payload. The requests of verbs that may wait have none. */
function decodeMessage(codec: CallCodec<unknown, unknown>, message: WireMessage): unknown {
  return codec.decodeRequest(message, new PayloadReader(new Uint8Array(0)))
}

/**
 * Returns the class of a shard verb's call; undefined: the call is not of a shard verb.
 *
 * @throws ProtocolError when the request is malformed
 */
export function shardCallClass(call: WireMessage): CallClass | undefined {
  return servedVerbs.get(call.verb)?.classOf(call[call.verb])
}

/**
 * Serves a call of a shard verb on the local replica; undefined: the call is not of a shard verb.
 *
 * @throws ProtocolError when the request is malformed, ReplicaError `not_hosted`
 */
export function prepareShardCall(
  call: WireMessage, payload: PayloadReader, replica: (shard: ShardId) => ShardReplica | undefined, pageBytes: number,
): Work | undefined {
  const served = servedVerbs.get(call.verb)
  if (!served) return undefined
  const shard = decodeShard(required(call.shard, 'shard'))
  const hosted = replica(shard)
  if (!hosted) {
    const { incarnation, range: { begin, end } } = shard
    throw new ReplicaError('not_hosted', `this node has no replica of shard ${begin}-${end} of ${incarnation}`)
  }
  return served.prepare({ message: call[call.verb], payload }, hosted, pageBytes)
}

/** Groups chunks of a blob into pages, so that fewer messages and grants are sent. */
async function* chunkPages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Uint8Array[]> {
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
