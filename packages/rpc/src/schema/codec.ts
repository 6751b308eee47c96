import type { Verb } from '@sectional/core'
import type { PayloadReader, PayloadWriter } from './payload.ts'
import type { WireMessage } from './schema.ts'

interface VersionedCodec {
  /**
   * The first version of the protocol that has the verb. A call to a peer of an earlier version rejects with
   * `not_hosted`, and nothing is sent. Absent: each supported version has the verb.
   */
  readonly since?: number
}

/** Encodes the request and the reply of a verb as messages. Raw bytes go into the payload that follows a message. */
export interface CallCodec<Request, Reply> extends VersionedCodec {
  encodeRequest(request: Request, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeRequest(message: WireMessage, payload: PayloadReader): Request
  encodeReply(reply: Reply, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeReply(message: WireMessage, payload: PayloadReader): Reply
}

/** Encodes the request and the rows of a verb that answers with pages of rows. */
export interface PagesCodec<Request, Row> extends VersionedCodec {
  /** The name of the field of `Page.rows` that has the rows. */
  readonly rows: string
  encodeRequest(request: Request): object
  /** @throws ProtocolError */
  decodeRequest(message: WireMessage): Request
  encodeRow(row: Row, payload: PayloadWriter): object
  /** @throws ProtocolError */
  decodeRow(message: WireMessage, payload: PayloadReader): Row
}

/**
 * The codec that a verb needs according to its shape. The content of an upload follows the call in chunks. A download
 * is sent as pages of chunks.
 */
export type CodecOf<V> =
  V extends Verb<'call', infer Request, infer Reply> ? CallCodec<Request, Reply>
    : V extends Verb<'upload', AsyncIterable<Uint8Array>, infer Reply> ? CallCodec<void, Reply>
      : V extends Verb<'pages' | 'download', infer Request, infer Row> ? PagesCodec<Request, Row> : never

/** A codec for each verb of a table. */
export type CodecsOf<Table> = { readonly [Name in keyof Table]: CodecOf<Table[Name]> }

/** The request's part of the codec of a verb that takes no request. */
export const noRequest = { encodeRequest: () => ({}), decodeRequest: () => undefined }

/** The reply's part of the codec of a verb whose reply is empty. */
export const noReply = { encodeReply: () => ({}), decodeReply: () => undefined }
