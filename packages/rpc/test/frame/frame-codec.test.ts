import assert from 'node:assert/strict'
import fc from 'fast-check'
import { FrameDecoder, FrameEncoder, frameOverheadBytes } from '../../src/frame/frame-codec.ts'
import type { OutgoingMessage, RawMessage } from '../../src/frame/frame-codec.ts'
import { ProtocolError } from '../../src/schema/schema.ts'

const key = '01'.repeat(32)
const limits = { frameBytes: 256, maxMessageBytes: 2000 }

function message(header: Uint8Array, ...payload: Uint8Array[]): OutgoingMessage {
  return { header, payload, bytes: payload.reduce((sum, chunk) => sum + chunk.length, header.length) }
}

function framesOf(messages: readonly OutgoingMessage[], encoder = new FrameEncoder(key, limits)): Uint8Array[] {
  const frames: Uint8Array[] = []
  encoder.encode(messages, frame => frames.push(Buffer.from(frame)))
  return frames
}

function text(raw: RawMessage): readonly string[] {
  return [Buffer.from(raw.header).toString('hex'), Buffer.from(raw.payload).toString('hex')]
}

const anyMessage = fc.tuple(
  fc.uint8Array({ minLength: 1, maxLength: 400, size: 'max' }),
  fc.array(fc.uint8Array({ maxLength: 300, size: 'max' }), { maxLength: 4 }),
)
  .map(([header, payload]) => message(header, ...payload))

describe('frames', () => {
  it('are decoded to the encoded messages, in order, within the limit of a frame', () => {
    fc.assert(fc.property(fc.array(fc.array(anyMessage, { minLength: 1, maxLength: 8 }), { maxLength: 4 }), turns => {
      const encoder = new FrameEncoder(key, limits)
      const decoder = new FrameDecoder(key, limits)
      for (const messages of turns) {
        const frames = framesOf(messages, encoder)
        for (const frame of frames) assert(frame.length <= limits.frameBytes + frameOverheadBytes)
        const received = frames.flatMap(frame => decoder.decode(frame)).map(text)
        assert.deepEqual(
          received, messages.map(({ header, payload }) => text({ header, payload: Buffer.concat(payload) })),
        )
      }
    }))
  })

  it('pack the messages of a turn into one frame', () => {
    const small = Array.from({ length: 10 }, (_, i) => message(Buffer.of(i), Buffer.alloc(10)))
    assert.equal(framesOf(small).length, 1)
  })

  it('refuse messages over the limit, also in fragments that never end', () => {
    const decoder = new FrameDecoder(key, limits)
    const frames = framesOf([message(Buffer.of(1), Buffer.alloc(3000))])
    assert.throws(() => frames.forEach(frame => decoder.decode(frame)), /over the limit/)
  })

  it('refuse a message in more fragments than a node sends, however short they are', () => {
    const large = { frameBytes: 64, maxMessageBytes: 1_000_000 }
    const sent = (count: number): readonly Uint8Array[] =>
      framesOf([message(Buffer.of(1), Buffer.alloc(64 * count - 9))], new FrameEncoder(key, large))
    const most = sent(1024)
    const decoder = new FrameDecoder(key, large)
    assert.equal(most.length, 1024)
    assert.equal(most.flatMap(frame => decoder.decode(frame)).length, 1)
    const another = new FrameDecoder(key, large)
    assert.throws(() => sent(1025).forEach(frame => another.decode(frame)),
      new ProtocolError('a message has too many fragments'))
  })

  it('refuse frames over the limit', () => {
    const [frame] = framesOf(
      [message(Buffer.of(1), Buffer.alloc(500))], new FrameEncoder(key, { ...limits, frameBytes: 1000 }),
    )
    assert(frame)
    assert.throws(() => new FrameDecoder(key, limits).decode(frame), /over the limit/)
  })

  it('refuse another key, a replayed frame, a lost frame and two exchanged frames', () => {
    const encoder = new FrameEncoder(key, limits)
    const [first, second] = [1, 2].map(n => framesOf([message(Buffer.of(n))], encoder)[0])
    assert(first && second)
    assert.throws(() => new FrameDecoder('02'.repeat(32), limits).decode(first), /wrong tag/)
    const replayed = new FrameDecoder(key, limits)
    replayed.decode(first)
    assert.throws(() => replayed.decode(first), /wrong tag/)
    assert.throws(() => new FrameDecoder(key, limits).decode(second), /wrong tag/)
  })

  it('refuse contents that no node sends, also with a correct tag', () => {
    const unsealed = () => ({ next: () => Buffer.alloc(16) })
    const decode = (...frames: readonly (readonly number[])[]): readonly RawMessage[] => {
      const decoder = new FrameDecoder(key, limits, unsealed)
      return frames.flatMap(bytes => decoder.decode(Buffer.concat([Buffer.from(bytes), Buffer.alloc(16)])))
    }
    const [packed, fragment, last] = framesOf([message(Buffer.of(1)), message(Buffer.of(2), Buffer.alloc(300))])
      .map(frame => frame[0]!)
    assert.equal(new Set([packed, fragment, last]).size, 3)
    const record = [0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 9]
    assert.deepEqual(decode([packed!, ...record]).map(text), [['07', '0809']])
    assert.throws(() => decode([packed!, ...record, 0, 0, 0]), new ProtocolError('a record is cut off'))
    assert.throws(() => decode([packed!, ...record.slice(0, -1)]), new ProtocolError('a record is cut off'))
    assert.throws(() => decode([9, ...record]), new ProtocolError('a frame of unknown kind 9'))
    assert.throws(() => decode([fragment!, ...record], [last!, ...record]),
      new ProtocolError('fragments hold more than one message'))
  })

  it('refuse any bytes, and any change of a valid frame', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
      assert.throws(() => new FrameDecoder(key, limits).decode(bytes), ProtocolError)
    }))
    fc.assert(fc.property(anyMessage, fc.nat(), fc.integer({ min: 1, max: 255 }), (sent, at, change) => {
      const [frame] = framesOf([sent])
      assert(frame)
      const changed = Buffer.from(frame)
      changed.writeUInt8(changed.readUInt8(at % changed.length) ^ change, at % changed.length)
      assert.throws(() => new FrameDecoder(key, limits).decode(changed), ProtocolError)
    }))
  })
})
