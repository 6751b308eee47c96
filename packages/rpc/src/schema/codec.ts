import type { Verb } from '@sectional/core'
import type { PayloadReader, PayloadWriter } from './payload.ts'
import type { WireMessage } from './schema.ts'

/** How the request and the reply of a verb travel: as messages, with raw bytes in the payload behind them. */
export interface CallCodec<Request, Reply> {
  encodeRequest(request: Request, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeRequest(message: WireMessage, payload: PayloadReader): Request
  encodeReply(reply: Reply, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeReply(message: WireMessage, payload: PayloadReader): Reply
}

/** How a verb travels whose answer is pages of rows. */
export interface PagesCodec<Request, Row> {
  /** The field of the rows in `Page.rows`. */
  readonly rows: string
  encodeRequest(request: Request): object
  /** @throws ProtocolError */
  decodeRequest(message: WireMessage): Request
  encodeRow(row: Row, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeRow(message: WireMessage, payload: PayloadReader): Row
}

/**
 * The codec that a verb needs by its shape. The content of an upload travels in chunks behind the call; a download is
 * pages of chunks.
 */
export type CodecOf<V> =
  V extends Verb<'call', infer Request, infer Reply> ? CallCodec<Request, Reply>
    : V extends Verb<'upload', AsyncIterable<Uint8Array>, infer Reply> ? CallCodec<void, Reply>
      : V extends Verb<'pages' | 'download', infer Request, infer Row> ? PagesCodec<Request, Row> : never

/** A codec for each verb of a table. */
export type CodecsOf<Table> = { readonly [Name in keyof Table]: CodecOf<Table[Name]> }

/** The part of a codec for a verb that takes no request. */
export const noRequest = { encodeRequest: () => ({}), decodeRequest: () => undefined }

/** The part of a codec for a verb whose reply says nothing but that it is done. */
export const noReply = { encodeReply: () => ({}), decodeReply: () => undefined }
