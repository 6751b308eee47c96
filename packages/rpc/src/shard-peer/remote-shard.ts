import { deriveVerbs, shardPeerVerbs } from '@sectional/core'
import type { CallClass } from '../link/call-budget.ts'
import type { Caller } from '../link/caller.ts'
import type { WireCall, WireScan, WireUpload } from '../link/wire-verb.ts'
import { shardPeerCodecs } from './shard-peer-codecs.ts'

/** Calls the node that has the replica. `shard` is the encoded id of the shard (`encodeShard`). */
interface ShardCaller { readonly caller: Caller; readonly shard: object }

function classOf(waits: ((request: unknown) => boolean) | undefined): (request: unknown) => CallClass {
  return waits === undefined ? () => 'data' : request => waits(request) ? 'wait' : 'data'
}

/** The stub of what another node has of a shard: of its replica, and of the indexes of the replica. */
export const RemoteShard = deriveVerbs<typeof shardPeerVerbs, ShardCaller>(shardPeerVerbs, {
  call: ({ name, waits }) => {
    const verb: WireCall<unknown, unknown> = { ...shardPeerCodecs[name], name, classOf: classOf(waits) }
    return ({ caller, shard }, request, context) => caller.call(verb, shard, request, context)
  },
  pages: ({ name }) => {
    const verb: WireScan<unknown, unknown> = { ...shardPeerCodecs[name], name }
    return ({ caller, shard }, request, context) => caller.scan(verb, shard, request, context)
  },
  upload: ({ name }) => {
    const verb: WireUpload<unknown> = { ...shardPeerCodecs[name], name }
    return ({ caller, shard }, chunks, context) => caller.upload(verb, shard, chunks, context)
  },
  download: ({ name }) => {
    const verb: WireScan<unknown, Uint8Array> = { ...shardPeerCodecs[name], name }
    return async function* ({ caller, shard }, request, context) {
      for await (const chunks of caller.scan(verb, shard, request, context)) yield* chunks
    }
  },
})
