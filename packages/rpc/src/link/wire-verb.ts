/** Describes a verb to a link: its codec, its name on the wire, and the class of its calls. */
import type { CallCodec, PagesCodec } from '../schema/codec.ts'
import type { CallClass } from './call-budget.ts'

/** A verb with one reply. `name` is its field in `Call.verb` and in `Reply.verb`. */
export interface WireCall<Request, Reply> extends CallCodec<Request, Reply> {
  readonly name: string
  /** Returns the class of a call with this request. It must be the same at both ends of the link. */
  classOf(request: Request): CallClass
}

/** A verb that answers with pages of rows. `name` is its field in `Call.verb`. */
export interface WireScan<Request, Row> extends PagesCodec<Request, Row> {
  readonly name: string
}

/** A verb whose content follows the call in chunks. */
export interface WireUpload<Reply> extends CallCodec<void, Reply> {
  readonly name: string
}
