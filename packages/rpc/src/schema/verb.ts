import type { PayloadReader, PayloadWriter } from './payload.ts'
import type { WireMessage } from './schema.ts'

/** How one verb travels. `name` is its field in `Call.verb` and `Reply.verb`. */
export interface Verb<Request, Reply> {
  readonly name: string
  encodeRequest(request: Request, payload: PayloadWriter): object
  decodeRequest(message: WireMessage, payload: PayloadReader): Request
  encodeReply(reply: Reply, payload: PayloadWriter): object
  decodeReply(message: WireMessage, payload: PayloadReader): Reply
}

/** How a verb travels whose answer is pages of rows. `rows` is its field in `Page.rows`. */
export interface StreamVerb<Request, Row> {
  readonly name: string
  readonly rows: string
  encodeRequest(request: Request): object
  decodeRequest(message: WireMessage): Request
  encodeRow(row: Row, payload: PayloadWriter): object
  decodeRow(message: WireMessage, payload: PayloadReader): Row
}
