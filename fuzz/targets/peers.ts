/** Frames and messages of other nodes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { FrameDecoder, FrameEncoder, type OutgoingMessage } from '../../packages/rpc/src/frame/frame-codec.ts'
import { controlCodecs } from '../../packages/rpc/src/control/control-codecs.ts'
import { decodeRaft } from '../../packages/rpc/src/control/raft-codec.ts'
import { shardPeerCodecs } from '../../packages/rpc/src/shard-peer/shard-peer-codecs.ts'
import { PayloadReader } from '../../packages/rpc/src/schema/payload.ts'
import { messageHeaderType, ProtocolError, type WireMessage } from '../../packages/rpc/src/schema/schema.ts'
import { RawPeer } from '../../packages/rpc/test/raw-peer.ts'
import { context, TestWorld } from '../../packages/rpc/test/test-node.ts'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { callsOf, messages, verbs } from '../generators/wire-messages.ts'

const key = '01'.repeat(32)
const limits = { frameBytes: 256, maxMessageBytes: 2000 }
const payload = fc.uint8Array({ maxLength: 60 })

function orProtocolError<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

const sent = fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 400 }), fc.uint8Array({ maxLength: 300 }))
const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })

const frames = target({
  name: 'rpc-frames', runsInTests: 300, inputs: fc.tuple(fc.array(sent, { minLength: 1, maxLength: 5 }), changes),
  property: 'Frames are decoded to the messages that were encoded; changed frames are refused.',
  check: ([all, changed]) => {
    const encoder = new FrameEncoder(key, limits)
    const encoded: Buffer[] = []
    encoder.encode(all.map(([header, body]): OutgoingMessage =>
      ({ header, payload: [body], bytes: header.length + body.length })), frame => encoded.push(Buffer.from(frame)))
    const decoder = new FrameDecoder(key, limits)
    const decoded = encoded.flatMap(frame => decoder.decode(frame))
    assert.deepEqual(
      decoded.map(({ header, payload: body }) => [Buffer.from(header), Buffer.from(body)]),
      all.map(([header, body]) => [Buffer.from(header), Buffer.from(body)]),
    )
    const [first] = encoded
    const other = Buffer.from(first!)
    for (const [at, value] of changed) other[at % other.length] = value
    const decodeOther = (): unknown => orProtocolError(() => new FrameDecoder(key, limits).decode(other))
    if (!other.equals(first!)) assert.equal(decodeOther(), undefined)
  },
})

/** The codecs of all verbs, as far as decoding of what a peer sends is concerned. */
type Decoders = Readonly<Record<string, {
  readonly decodeRequest: (message: WireMessage, payload: PayloadReader) => unknown
  readonly decodeReply?: (message: WireMessage, payload: PayloadReader) => unknown
  readonly decodeRow?: (message: WireMessage, payload: PayloadReader) => unknown
  readonly rows?: string
}>>
const decoders = { ...shardPeerCodecs, ...controlCodecs } as unknown as Decoders

/** Decodes the content of a message in the way in which a link does. */
function decodeContent(message: WireMessage, bytes: Uint8Array): void {
  const { call, reply, page, raft } = message
  const read = (): PayloadReader => new PayloadReader(bytes)
  if (raft !== null) orProtocolError(() => decodeRaft(raft, read()))
  if (call !== null) orProtocolError(() => decoders[call.verb]?.decodeRequest(call[call.verb], read()))
  if (reply !== null) orProtocolError(() => decoders[reply.verb]?.decodeReply?.(reply[reply.verb], read()))
  if (page?.rows === undefined) return
  for (const codec of Object.values(decoders)) {
    if (codec.rows !== page.rows) continue
    const body = read()
    for (const row of page[page.rows].rows) if (orProtocolError(() => codec.decodeRow!(row, body)) === undefined) break
  }
}

const anyCall = fc.oneof(...verbs.map(callsOf))

const messageContents = target({
  name: 'rpc-messages', runsInTests: 300, inputs: fc.tuple(fc.oneof(anyCall, messages), payload, changes),
  property: 'Requests, replies and rows of all verbs are decoded or refused as a breach of the protocol.',
  check: ([message, bytes, changed]) => {
    const header = Buffer.from(messageHeaderType.encode(message))
    for (const each of [header, changedBytes(header, changed)]) {
      const decoded = orProtocolError(() => messageHeaderType.decode(each))
      if (decoded !== undefined) decodeContent(decoded, bytes)
    }
  },
})

function changedBytes(bytes: Buffer, changed: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [at, value] of changed) if (copy.length > 0) copy[at % copy.length] = value
  return copy
}

const peer = target({
  name: 'rpc-peer', runsInTests: 60,
  inputs: fc.array(fc.tuple(fc.oneof(anyCall, messages), payload, changes), { minLength: 1, maxLength: 8 }),
  property: 'A node that a peer sends any messages serves other nodes afterwards, and nothing of the peer is left.',
  check: async all => {
    const world = new TestWorld()
    const node = await world.node('b').start()
    const hostile = await RawPeer.dial(world, node, 'hostile')
    for (const [message, bytes, changed] of all) {
      hostile.send([{ header: changedBytes(Buffer.from(messageHeaderType.encode(message)), changed), payload: bytes }])
    }
    await world.clock.advance(200)
    hostile.close()
    await world.settle()
    assert.deepEqual(node.connected(), [])
    const honest = await world.node('a').start([node])
    await world.settle()
    assert.equal((await honest.peers.control('b').status(context)).node, 'b')
    assert.deepEqual(await world.stop(), { connections: 0, timers: 0 })
  },
})

export const peerTargets: readonly FuzzTarget[] = [frames, messageContents, peer]
