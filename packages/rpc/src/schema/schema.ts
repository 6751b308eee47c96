import { asBuffer } from '@sectional/core'
import protobuf from 'protobufjs'
import { schemaText } from './schema-text.ts'

/**
 * A decoded message. protobufjs has checked the type of each field; absent optional fields and submessages read as
 * null.
 */
export type WireMessage = Readonly<Record<string, any>>

/** One type of the closed set in proto/. */
export interface MessageType {
  encode(message: object): Uint8Array
  /** @throws ProtocolError when the bytes are not such a message */
  decode(bytes: Uint8Array): WireMessage
}

/** The peer broke the protocol; the text is short and safe to log and to send. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

function load(): protobuf.Root {
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
    encode: message => type.encode(message).finish(),
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

/** @throws ProtocolError when a submessage that must be there is not */
export function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) throw new ProtocolError(`${name} is missing`)
  return value
}

/** A whole number from 0 to 2^53 - 1 (`double` on the wire). @throws ProtocolError */
export function count(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new ProtocolError(`${name} is not a count`)
  }
  return value
}

const maxUint32 = 0xffffffff

/** A limit as `uint32`: what is greater limits nothing either way. */
export function limit(value: number): number { return Math.min(value, maxUint32) }

/** An optional `uint32`; what the caller leaves out, or cannot be written, is no limit. */
export function optionalLimit(value: number | undefined): number | undefined {
  return value === undefined || value > maxUint32 ? undefined : value
}
