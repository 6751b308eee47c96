import type { CallContext } from '@sectional/core'
import type { WireCall, WireScan, WireUpload } from './wire-verb.ts'

/**
 * Calls one node over whichever link to it is best at that moment. `shard` is the message that names the shard; null:
 * none.
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
