/** What a link has to know of a verb to carry its calls. */
import type { CallCodec, PagesCodec } from '../schema/codec.ts'
import type { CallClass } from './call-budget.ts'

/** A verb with one reply. `name` is its field in `Call.verb` and in `Reply.verb`. */
export interface WireCall<Request, Reply> extends CallCodec<Request, Reply> {
  readonly name: string
  /** The budget that a call with this request counts in, the same at both ends of the link. */
  classOf(request: Request): CallClass
}

/** A verb that answers with pages of rows. `name` is its field in `Call.verb`. */
export interface WireScan<Request, Row> extends PagesCodec<Request, Row> {
  readonly name: string
}

/** A verb whose content travels in chunks behind the call. */
export interface WireUpload<Reply> extends CallCodec<void, Reply> {
  readonly name: string
}
