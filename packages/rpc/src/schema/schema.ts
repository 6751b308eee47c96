import { asBuffer, ReplicaError } from '@sectional/core'
import protobuf from 'protobufjs'
import { schemaText } from './schema-text.ts'

/**
 * A decoded message. protobufjs has checked the type of each field. Absent optional fields and submessages are null.
 */
export type WireMessage = Readonly<Record<string, any>>

/** The codec of a message type of proto/. */
export interface MessageType {
  /** Replaces what UTF-8 cannot encode in texts by U+FFFD. */
  encode(message: object): Uint8Array
  /** @throws ReplicaError `protocol` when UTF-8 cannot encode a text of the message */
  encodeExactly(message: object): Uint8Array
  /** @throws ProtocolError when the bytes are not a message of this type */
  decode(bytes: Uint8Array): WireMessage
}

/** The peer broke the protocol. The text is short and may be logged and sent to the peer. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

/**
 * Replaces `util.oneOfSetter` of protobufjs, which deletes all other members of the oneof whenever one is decoded.
 * To decode a call, whose oneof has 37 members, took five times as long. As there, the last member counts.
 */
function oneOfSetter(names: readonly string[]): (this: Record<string | symbol, unknown>, name: string) => void {
  const present = Symbol(names[0])
  return function(name) {
    const before = this[present]
    if (before !== undefined && before !== name) delete this[before as string]
    this[present] = name
  }
}

/**
 * Writes U+FFFD for halves of surrogate pairs, which UTF-8 cannot encode. protobufjs would write short texts with them
 * in a form that it refuses to read, so that the peer closes the link with all of its calls.
 */
class MessageWriter extends protobuf.BufferWriter {
  override string(text: string): protobuf.Writer { return super.string(text.toWellFormed()) }
}

/** Characters of a refused text that are shown. */
const shownLength = 100

/** Refuses texts with halves of surrogate pairs. */
class ExactWriter extends protobuf.BufferWriter {
  override string(text: string): protobuf.Writer {
    if (!text.isWellFormed()) {
      throw new ReplicaError('protocol', `${JSON.stringify(text.slice(0, shownLength))} is not valid Unicode text`)
    }
    return super.string(text)
  }
}

function load(): protobuf.Root {
  Object.assign(protobuf.util, { oneOfSetter })
  const root = new protobuf.Root()
  for (const [file, text] of Object.entries(schemaText)) {
    root.filename = file
    protobuf.parse(text, root)
  }
  root.resolveAll()
  return root
}

function messageType(root: protobuf.Root, name: string): MessageType {
  const type = root.lookupType(`sectional.${name}`)
  return {
    encode: message => type.encode(message, new MessageWriter()).finish(),
    encodeExactly: message => type.encode(message, new ExactWriter()).finish(),
    decode: bytes => {
      try {
        return type.decode(asBuffer(bytes))
      } catch (error) {
        throw new ProtocolError(`malformed ${name}`, { cause: error })
      }
    },
  }
}

const root = load()
export const handshakeType = messageType(root, 'Handshake')
export const welcomeCoreType = messageType(root, 'WelcomeCore')
export const messageHeaderType = messageType(root, 'Message')

/** Returns the value of a mandatory submessage. @throws ProtocolError when it is absent */
export function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) throw new ProtocolError(`${name} is missing`)
  return value
}

/** Checks that a `double` of the wire is an integer from 0 to 2^53 - 1, and returns it. @throws ProtocolError */
export function count(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new ProtocolError(`${name} is not a count`)
  }
  return value
}

const maxUint32 = 0xffffffff

/** Converts a limit to `uint32`. No branch is as long as the greatest `uint32`, so greater limits are equivalent. */
export function limit(value: number): number { return Math.min(value, maxUint32) }

/** Converts a limit to an optional `uint32`. A limit that does not fit is omitted, which means that there is none. */
export function optionalLimit(value: number | undefined): number | undefined {
  return value === undefined || value > maxUint32 ? undefined : value
}
