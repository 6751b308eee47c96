import type { CallContext } from '@sectional/core'
import type { WireCall, WireScan, WireUpload } from './wire-verb.ts'

/**
 * Calls one node, on the link to it that is best at the time of the call. `shard` is the encoded id of the shard; null:
 * the call concerns no shard.
 */
export interface Caller {
  call<Request, Reply>(
    verb: WireCall<Request, Reply>, shard: object | null, request: Request, context: CallContext,
  ): Promise<Reply>
  scan<Request, Row>(
    verb: WireScan<Request, Row>, shard: object, request: Request, context: CallContext,
  ): AsyncIterable<readonly Row[]>
  upload<Reply>(
    verb: WireUpload<Reply>, shard: object, chunks: AsyncIterable<Uint8Array>, context: CallContext,
  ): Promise<Reply>
}
