/** Serves the calls of a verb: its codec decodes the request, and encodes the answer of the implementation. */
import type { CallContext } from '@sectional/core'
import type { CallCodec, PagesCodec } from '../schema/codec.ts'
import { PayloadWriter } from '../schema/payload.ts'
import type { PayloadReader } from '../schema/payload.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { Answer, Work } from './calls-served.ts'

/** Bytes counted for each row besides its body, about the size of its header. They bound pages without bodies. */
const rowOverheadBytes = 128

/** A request that was received and not yet decoded. */
export interface ReceivedRequest { readonly message: WireMessage; readonly payload: PayloadReader }

/**
 * @param act executes the call
 * @throws ProtocolError when the request is malformed
 */
export function serveCall<Request, Reply>(
  name: string, codec: CallCodec<Request, Reply>, { message, payload }: ReceivedRequest,
  act: (request: Request, context: CallContext) => Promise<Reply>,
): Work {
  const request = codec.decodeRequest(message, payload)
  payload.finish()
  return { kind: 'reply', run: async context => encodeReply(name, codec, await act(request, context)) }
}

/**
 * @param act executes the call with the chunks that follow it
 * @throws ProtocolError when the request is malformed
 */
export function serveUpload<Reply>(
  name: string, codec: CallCodec<void, Reply>, { payload }: ReceivedRequest,
  act: (chunks: AsyncIterable<Uint8Array>, context: CallContext) => Promise<Reply>,
): Work {
  payload.finish()
  return { kind: 'upload', run: async (context, chunks) => encodeReply(name, codec, await act(chunks, context)) }
}

/**
 * @param pageBytes a page that reaches this size is split
 * @param act executes the call and returns pages of rows
 * @throws ProtocolError when the request is malformed
 */
export function servePages<Request, Row>(
  codec: PagesCodec<Request, Row>, { message, payload }: ReceivedRequest, pageBytes: number,
  act: (request: Request, context: CallContext) => AsyncIterable<readonly Row[]>,
): Work {
  const request = codec.decodeRequest(message)
  payload.finish()
  return { kind: 'pages', run: context => encodePages(codec, act(request, context), pageBytes) }
}

function encodeReply<Reply>(name: string, codec: Pick<CallCodec<unknown, Reply>, 'encodeReply'>, reply: Reply): Answer {
  const payload = new PayloadWriter()
  return { fields: { [name]: codec.encodeReply(reply, payload) }, payload }
}

async function* encodePages<Row>(
  codec: Pick<PagesCodec<unknown, Row>, 'rows' | 'encodeRow'>, pages: AsyncIterable<readonly Row[]>, pageBytes: number,
): AsyncGenerator<Answer> {
  for await (const page of pages) {
    let rows: object[] = []
    let payload = new PayloadWriter()
    for (const row of page) {
      rows.push(codec.encodeRow(row, payload))
      if (payload.bytes + rows.length * rowOverheadBytes < pageBytes) continue
      yield { fields: { [codec.rows]: { rows } }, payload }
      rows = []
      payload = new PayloadWriter()
    }
    if (rows.length > 0) yield { fields: { [codec.rows]: { rows } }, payload }
  }
}
