/**
 * The frames of an open link (DESIGN.md has a drawing):
 *
 *   frame    = kind u8 | body | tag (16 bytes)
 *   packed   (kind 1): body = record, one or more
 *   fragment (kind 2): body = the next bytes of one record that is longer than a frame
 *   last     (kind 3): body = the last bytes of such a record
 *   record   = header length u32 | payload length u32 | header (protobuf Message) | payload
 *
 * Integers are big-endian. The tag is the first 16 bytes of HMAC-SHA256 over a 64-bit frame counter, which is not sent,
 * and the frame. Each direction has its own key. If a frame is forged, changed, replayed, dropped or moved to another
 * connection, the receiver ends the link.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { asBuffer } from '@sectional/core'
import { ProtocolError } from '../schema/schema.ts'

/** A message with its header still encoded. */
export interface RawMessage {
  readonly header: Uint8Array
  readonly payload: Uint8Array
}

/** A message to be sent. The pieces of its payload are copied once, into the frame. */
export interface OutgoingMessage {
  readonly header: Uint8Array
  readonly payload: readonly Uint8Array[]
  /** Length of header and payload together. */
  readonly bytes: number
}

export interface FrameLimits {
  readonly frameBytes: number
  readonly maxMessageBytes: number
}

/**
 * 256 bits in hex. The key is a string because Node.js takes 30 us for each HMAC to convert a key of bytes, and no time
 * for a string.
 */
export type FrameKey = string

const kindPacked = 1
const kindFragment = 2
const kindLast = 3
const kindBytes = 1
const tagBytes = 16
const recordHeadBytes = 8
/** Most fragments of one message. Nodes send 65 at most. Each needs memory of its own, however short it is. */
const fragmentsMax = 1024
/** Bytes that a frame has in addition to its body. */
export const frameOverheadBytes = kindBytes + tagBytes

/** Seals the frames of one direction of a link. */
export interface FrameSeal {
  /** Returns the tag (16 bytes) of the next frame in this direction, and advances the frame counter. */
  next(covered: Uint8Array): Uint8Array
}

/** Returns the seal of a direction with this key. */
export type SealFrames = (key: FrameKey) => FrameSeal

class HmacSeal implements FrameSeal {
  readonly #key: FrameKey
  readonly #counter = Buffer.alloc(8)
  #frames = 0n

  constructor(key: FrameKey) { this.#key = key }

  next(covered: Uint8Array): Buffer {
    this.#counter.writeBigUInt64BE(this.#frames++)
    return createHmac('sha256', this.#key).update(this.#counter).update(covered).digest().subarray(0, tagBytes)
  }
}

const sealWithHmac: SealFrames = key => new HmacSeal(key)

/** Encodes messages into sealed frames. */
export class FrameEncoder {
  readonly #seal: FrameSeal
  readonly #limits: FrameLimits

  constructor(key: FrameKey, limits: FrameLimits, sealFrames = sealWithHmac) {
    this.#seal = sealFrames(key)
    this.#limits = limits
  }

  /** Packs as many messages into each frame as fit, and calls `send` once for each frame. */
  encode(messages: readonly OutgoingMessage[], send: (frame: Uint8Array) => void): void {
    let start = 0
    let bodyBytes = 0
    for (const [index, message] of messages.entries()) {
      const recordBytes = recordHeadBytes + message.bytes
      if (index > start && bodyBytes + recordBytes > this.#limits.frameBytes) {
        send(this.#packed(messages.slice(start, index), bodyBytes))
        start = index
        bodyBytes = 0
      }
      bodyBytes += recordBytes
      if (recordBytes > this.#limits.frameBytes) {
        this.#fragments(message, send)
        start = index + 1
        bodyBytes = 0
      }
    }
    if (start < messages.length) send(this.#packed(start === 0 ? messages : messages.slice(start), bodyBytes))
  }

  #packed(messages: readonly OutgoingMessage[], bodyBytes: number): Uint8Array {
    const frame = Buffer.allocUnsafe(kindBytes + bodyBytes + tagBytes)
    frame[0] = kindPacked
    let offset = kindBytes
    for (const message of messages) offset = writeRecord(message, frame, offset)
    return this.#sealed(frame)
  }

  #fragments(message: OutgoingMessage, send: (frame: Uint8Array) => void): void {
    const record = Buffer.allocUnsafe(recordHeadBytes + message.bytes)
    writeRecord(message, record, 0)
    for (let from = 0; from < record.length; from += this.#limits.frameBytes) {
      const piece = record.subarray(from, from + this.#limits.frameBytes)
      const frame = Buffer.allocUnsafe(frameOverheadBytes + piece.length)
      frame[0] = from + piece.length === record.length ? kindLast : kindFragment
      frame.set(piece, kindBytes)
      send(this.#sealed(frame))
    }
  }

  #sealed(frame: Buffer): Uint8Array {
    const end = frame.length - tagBytes
    frame.set(this.#seal.next(frame.subarray(0, end)), end)
    return frame
  }
}

function writeRecord(message: OutgoingMessage, target: Buffer, start: number): number {
  target.writeUInt32BE(message.header.length, start)
  target.writeUInt32BE(message.bytes - message.header.length, start + 4)
  target.set(message.header, start + recordHeadBytes)
  let offset = start + recordHeadBytes + message.header.length
  for (const chunk of message.payload) {
    target.set(chunk, offset)
    offset += chunk.length
  }
  return offset
}

/** Verifies sealed frames and returns their messages, as views of the frames. */
export class FrameDecoder {
  readonly #seal: FrameSeal
  readonly #limits: FrameLimits
  #fragments: Uint8Array[] = []
  #fragmentBytes = 0

  constructor(key: FrameKey, limits: FrameLimits, sealFrames = sealWithHmac) {
    this.#seal = sealFrames(key)
    this.#limits = limits
  }

  /** @throws ProtocolError. The link must then end, because the frame counters of the two ends may differ. */
  decode(bytes: Uint8Array): RawMessage[] {
    const frame = asBuffer(bytes)
    if (frame.length <= frameOverheadBytes) throw new ProtocolError('a frame is too short')
    if (frame.length > this.#limits.frameBytes + frameOverheadBytes) {
      throw new ProtocolError(`a frame of ${frame.length} bytes is over the limit`)
    }
    const end = frame.length - tagBytes
    if (!timingSafeEqual(this.#seal.next(frame.subarray(0, end)), frame.subarray(end))) {
      throw new ProtocolError('a frame has a wrong tag')
    }
    const body = frame.subarray(kindBytes, end)
    switch (frame[0]) {
      case kindPacked: return this.#records(body)
      case kindFragment: this.#keep(body); return []
      case kindLast: this.#keep(body); return this.#joined()
      default: throw new ProtocolError(`a frame of unknown kind ${frame[0]}`)
    }
  }

  #keep(body: Uint8Array): void {
    this.#fragmentBytes += body.length
    if (this.#fragmentBytes > this.#limits.maxMessageBytes + recordHeadBytes) {
      throw new ProtocolError('a message in fragments is over the limit')
    }
    if (this.#fragments.length === fragmentsMax) throw new ProtocolError('a message has too many fragments')
    this.#fragments.push(body)
  }

  #joined(): RawMessage[] {
    const body = Buffer.concat(this.#fragments, this.#fragmentBytes)
    this.#fragments = []
    this.#fragmentBytes = 0
    const messages = this.#records(body)
    if (messages.length !== 1) throw new ProtocolError('fragments hold more than one message')
    return messages
  }

  #records(body: Buffer): RawMessage[] {
    const messages: RawMessage[] = []
    let offset = 0
    while (offset < body.length) {
      if (body.length - offset < recordHeadBytes) throw new ProtocolError('a record is cut off')
      const headerStart = offset + recordHeadBytes
      const payloadStart = headerStart + body.readUInt32BE(offset)
      const end = payloadStart + body.readUInt32BE(offset + 4)
      if (end > body.length) throw new ProtocolError('a record is cut off')
      messages.push({ header: body.subarray(headerStart, payloadStart), payload: body.subarray(payloadStart, end) })
      offset = end
    }
    return messages
  }
}
