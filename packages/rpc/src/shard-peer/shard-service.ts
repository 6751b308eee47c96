import { mapVerbs, ReplicaError, shardPeerVerbs } from '@sectional/core'
import type { IndexReplica, PeerHandlers, PeerIdentity, ShardId, ShardPeer, ShardReplica } from '@sectional/core'
import type { CallClass } from '../link/call-budget.ts'
import type { Work } from '../link/calls-served.ts'
import { serveCall, servePages, serveUpload } from '../link/served-work.ts'
import type { ReceivedRequest } from '../link/served-work.ts'
import type { CallCodec, PagesCodec } from '../schema/codec.ts'
import { PayloadReader } from '../schema/payload.ts'
import { required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeShard } from '../shard/record-codec.ts'
import { shardPeerCodecs } from './shard-peer-codecs.ts'

const blobPageBytes = 192 * 1024

/** Serves the calls of one verb on this node. */
interface ServedVerb {
  /** Returns the class of a call with this request. @throws ProtocolError when the request is malformed */
  classOf(message: WireMessage): CallClass
  /** @throws ProtocolError when the request is malformed */
  prepare(received: ReceivedRequest, local: ShardPeer, pageBytes: number): Work
}

const data = (): CallClass => 'data'

/** The shard verbs, by name, with the functions that serve them. A call of another verb is refused. */
const servedVerbs: ReadonlyMap<string, ServedVerb> = mapVerbs<typeof shardPeerVerbs, ServedVerb>(shardPeerVerbs, {
  call: ({ name, waits, invoke }) => {
    const codec: CallCodec<unknown, unknown> = shardPeerCodecs[name]
    return {
      classOf: waits === undefined ? data : message => waits(decodeMessage(codec, message)) ? 'wait' : 'data',
      prepare: (received, local) => (
        serveCall(name, codec, received, (request, context) => invoke(local, request, context))),
    }
  },
  upload: ({ name, invoke }) => ({
    classOf: data,
    prepare: (received, local) => (
      serveUpload(name, shardPeerCodecs[name], received, (chunks, context) => invoke(local, chunks, context))),
  }),
  pages: ({ name, invoke }) => {
    const codec: PagesCodec<unknown, unknown> = shardPeerCodecs[name]
    return {
      classOf: data,
      prepare: (received, local, pageBytes) => (
        servePages(codec, received, pageBytes, (request, context) => invoke(local, request, context))),
    }
  },
  download: ({ name, invoke }) => {
    const codec: PagesCodec<unknown, Uint8Array> = shardPeerCodecs[name]
    return {
      classOf: data,
      prepare: (received, local, pageBytes) => (
        servePages(codec, received, pageBytes, (request, context) => chunkPages(invoke(local, request, context)))),
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

/** Finds what this node has of a shard. */
export type LocalShards = Pick<PeerHandlers, 'replica' | 'indexes'>

/** What peers reach of one shard. A member that this node does not have throws `not_hosted`. */
class LocalShard implements ShardPeer {
  readonly #local: LocalShards
  readonly #shard: ShardId
  readonly #from: PeerIdentity

  constructor(local: LocalShards, shard: ShardId, from: PeerIdentity) {
    this.#local = local
    this.#shard = shard
    this.#from = from
  }

  get replica(): ShardReplica {
    return this.#local.replica(this.#shard, this.#from) ?? this.#lacks('replica')
  }

  get indexes(): IndexReplica {
    return this.#local.indexes(this.#shard) ?? this.#lacks('indexes')
  }

  #lacks(what: string): never {
    const { incarnation, range: { begin, end } } = this.#shard
    throw new ReplicaError('not_hosted', `this node has no ${what} of shard ${begin}-${end} of ${incarnation}`)
  }
}

/**
 * Serves a call of a shard verb on this node; undefined: the call is not of a shard verb. The work rejects with
 * `not_hosted` when this node does not have what the verb is called on.
 *
 * @throws ProtocolError when the request is malformed
 */
export function prepareShardCall(
  call: WireMessage, payload: PayloadReader, local: LocalShards, from: PeerIdentity, pageBytes: number,
): Work | undefined {
  const served = servedVerbs.get(call.verb)
  if (!served) return undefined
  const shard = decodeShard(required(call.shard, 'shard'))
  return served.prepare({ message: call[call.verb], payload }, new LocalShard(local, shard, from), pageBytes)
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
