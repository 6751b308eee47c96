/** Generates values of the messages of verbs, and transmits them as a link does. */
import fc from 'fast-check'
import type { CallCodec, PagesCodec } from '../src/schema/codec.ts'
import { PayloadReader, PayloadWriter } from '../src/schema/payload.ts'
import { messageHeaderType, required } from '../src/schema/schema.ts'
import type { WireMessage } from '../src/schema/schema.ts'

/** Each field of T needs a generator. Those that `optional` names are absent from some of the records. */
export function record<T>(
  fields: { readonly [Name in keyof T]-?: fc.Arbitrary<T[Name]> }, ...optional: readonly (keyof T & string)[]
): fc.Arbitrary<T> {
  const requiredKeys = Object.keys(fields).filter(name => !(optional as readonly string[]).includes(name))
  return fc.record(fields, { requiredKeys, noNullPrototype: true } as object) as fc.Arbitrary<T>
}

export const text = fc.string({ unit: 'binary', maxLength: 10 })
export const bytes = fc.uint8Array({ maxLength: 12 }).map(each => Buffer.from(each))
export const uint = fc.nat(0xffffffff)
export const count = fc.maxSafeNat()

/** Generators of what a verb sends. A part that is absent has no fields. */
export interface VerbValues {
  readonly request?: fc.Arbitrary<unknown>
  readonly reply?: fc.Arbitrary<unknown>
  readonly rows?: fc.Arbitrary<unknown>
}

/** A message of one verb: a generator of its values, and how they are encoded and decoded. */
export interface Kind {
  readonly values: fc.Arbitrary<unknown>
  readonly encode: (value: unknown, payload: PayloadWriter) => object
  readonly decode: (message: WireMessage, payload: PayloadReader) => unknown
}

type ReplyCodec = CallCodec<unknown, unknown>
type RowsCodec = PagesCodec<unknown, unknown>
type Codec = ReplyCodec | RowsCodec

/** Returns the kinds of messages of all verbs by their names, such as `requests of scanIndex`. */
export function kindsOf<Name extends string>(
  codecs: Readonly<Record<Name, Codec>>, verbs: Readonly<Record<Name, VerbValues>>,
): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>()
  for (const [verb, { request, reply, rows }] of Object.entries<VerbValues>(verbs)) {
    const codec = codecs[verb as Name]
    if (request !== undefined) kinds.set(`requests of ${verb}`, requestsOf(verb, codec, request))
    if (reply !== undefined) kinds.set(`replies of ${verb}`, repliesOf(verb, codec as ReplyCodec, reply))
    if (rows !== undefined) kinds.set(`rows of ${verb}`, rowsOf(codec as RowsCodec, rows))
  }
  return kinds
}

function requestsOf(verb: string, codec: Codec, values: fc.Arbitrary<unknown>): Kind {
  return {
    values,
    encode: (value, payload) => ({ call: { timeoutMs: 1, [verb]: codec.encodeRequest(value, payload) } }),
    decode: (message, payload) => codec.decodeRequest(required(message.call?.[verb], verb), payload),
  }
}

function repliesOf(verb: string, codec: ReplyCodec, values: fc.Arbitrary<unknown>): Kind {
  return {
    values,
    encode: (value, payload) => ({ reply: { [verb]: codec.encodeReply(value, payload) } }),
    decode: (message, payload) => codec.decodeReply(required(message.reply?.[verb], verb), payload),
  }
}

function rowsOf(codec: RowsCodec, row: fc.Arbitrary<unknown>): Kind {
  return {
    values: fc.array(row, { maxLength: 3 }),
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
  return decoded
}
