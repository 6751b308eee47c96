/** Draws the messages of verbs, and transmits them as a link does. */
import fc from 'fast-check'
import { DrawnValues, drawnControlVerbs, drawnShardVerbs, type DrawnVerb } from '@sectional/core/verb-values'
import { SeededRandom } from '@sectional/runtime'
import type { CallCodec, PagesCodec } from '../src/schema/codec.ts'
import { PayloadReader, PayloadWriter } from '../src/schema/payload.ts'
import { messageHeaderType, required } from '../src/schema/schema.ts'
import type { WireMessage } from '../src/schema/schema.ts'

/** A message of one verb: a generator of its values, and how they are encoded and decoded. */
export interface Kind {
  readonly values: fc.Arbitrary<unknown>
  readonly encode: (value: unknown, payload: PayloadWriter) => object
  readonly decode: (message: WireMessage, payload: PayloadReader) => unknown
}

const drawnVerbs = { ...drawnShardVerbs, ...drawnControlVerbs }

type Codec = CallCodec<unknown, unknown> | PagesCodec<unknown, unknown>

/** Returns the kinds of messages of all verbs by their names, such as `requests of scanIndex`. */
export function kindsOf<Name extends keyof typeof drawnVerbs>(
  codecs: Readonly<Record<Name, Codec>>,
): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>()
  for (const [verb, codec] of Object.entries<Codec>(codecs)) {
    const { reply, request }: DrawnVerb = drawnVerbs[verb as Name]
    if (request !== undefined) kinds.set(`requests of ${verb}`, requestsOf(verb, codec, request))
    if ('rows' in codec) kinds.set(`rows of ${verb}`, rowsOf(codec, reply))
    else kinds.set(`replies of ${verb}`, repliesOf(verb, codec, reply))
  }
  return kinds
}

function drawn(draw: (values: DrawnValues) => unknown): fc.Arbitrary<unknown> {
  return fc.nat().map(seed => withoutAbsent(draw(new DrawnValues(new SeededRandom(seed)))))
}

/** Returns the value without the members that are undefined: many decoded objects do not have them. */
function withoutAbsent(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  if (Array.isArray(value)) return value.map(withoutAbsent)
  const present = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(present.map(([name, member]) => [name, withoutAbsent(member)]))
}

function requestsOf(verb: string, codec: Codec, draw: (values: DrawnValues) => unknown): Kind {
  return {
    values: drawn(draw),
    encode: (value, payload) => ({ call: { timeoutMs: 1, [verb]: codec.encodeRequest(value, payload) } }),
    decode: (message, payload) => codec.decodeRequest(required(message.call?.[verb], verb), payload),
  }
}

function repliesOf(verb: string, codec: CallCodec<unknown, unknown>, draw: (values: DrawnValues) => unknown): Kind {
  return {
    values: drawn(draw),
    encode: (value, payload) => ({ reply: { [verb]: codec.encodeReply(value, payload) } }),
    decode: (message, payload) => codec.decodeReply(required(message.reply?.[verb], verb), payload),
  }
}

function rowsOf(codec: PagesCodec<unknown, unknown>, draw: (values: DrawnValues) => unknown): Kind {
  return {
    values: drawn(values => values.list(() => draw(values))),
    encode: (all, payload) => (
      { page: { [codec.rows]: { rows: (all as unknown[]).map(each => codec.encodeRow(each, payload)) } } }),
    decode: (message, payload) => required(message.page?.[codec.rows], codec.rows).rows.map(
      (each: WireMessage) => codec.decodeRow(each, payload)),
  }
}

export interface Sent { readonly header: Buffer; readonly payload: Buffer }

export function sent({ encode }: Kind, value: unknown): Sent {
  const payload = new PayloadWriter()
  const message = encode(value, payload)
  return { header: Buffer.from(messageHeaderType.encode(message)), payload: Buffer.concat(payload.chunks) }
}

export function received({ decode }: Kind, { header, payload }: Sent): unknown {
  const reader = new PayloadReader(payload)
  const decoded = decode(messageHeaderType.decode(header), reader)
  reader.finish()
  return withoutAbsent(decoded)
}
