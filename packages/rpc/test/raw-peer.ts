import type { Connection } from '@sectional/runtime'
import { SeededRandom } from '@sectional/runtime'
import { FrameDecoder, FrameEncoder } from '../src/frame/frame-codec.ts'
import type { OutgoingMessage } from '../src/frame/frame-codec.ts'
import { DialingHandshake } from '../src/link/handshake.ts'
import type { VersionRange } from '../src/link/handshake.ts'
import { messageHeaderType } from '../src/schema/schema.ts'
import type { WireMessage } from '../src/schema/schema.ts'
import { secret } from './test-node.ts'
import type { TestNode, TestWorld } from './test-node.ts'

const random = new SeededRandom(7)

interface RawPeerOptions { readonly versions?: VersionRange; readonly instance?: string }

/** A peer that the test controls after a correct handshake. */
export class RawPeer {
  readonly received: WireMessage[] = []
  closed: string | undefined
  readonly #connection: Connection
  readonly #encoder: FrameEncoder

  private constructor(connection: Connection, encoder: FrameEncoder) {
    this.#connection = connection
    this.#encoder = encoder
    connection.onClose = reason => { this.closed = reason }
  }

  /**
   * @param versions the versions of the protocol that the peer supports; absent: those of this code
   * @param instance the process of the peer; absent: another one with each link
   */
  static async dial(
    world: TestWorld, node: TestNode, name: string,
    { versions, instance = Buffer.from(random.bytes(16)).toString('hex') }: RawPeerOptions = {},
  ): Promise<RawPeer> {
    const limits = { frameBytes: 1024 * 1024, maxMessageBytes: 1024 * 1024 }
    const connection = await world.hub.network(name).connect({ host: node.identity.node, port: 1 }, { timeoutMs: 1000 })
    const dialer = new DialingHandshake({
      identity: { node: name, address: `${name}:9`, clusterId: 'c1', instance }, secret, nonce: random.bytes(32),
      ...(versions && { versions }),
    })
    const peer = await new Promise<RawPeer>((resolve, reject) => {
      connection.onFrame = frame => {
        const step = dialer.receive(frame)
        if (step.kind === 'refused') return reject(new Error(step.refusal.reason))
        if (step.kind === 'continue') return connection.send(step.send)
        const raw = new RawPeer(connection, new FrameEncoder(step.result.sendKey, limits))
        const decoder = new FrameDecoder(step.result.receiveKey, limits)
        connection.onFrame = received => {
          for (const { header } of decoder.decode(received)) raw.received.push(messageHeaderType.decode(header))
        }
        resolve(raw)
      }
      connection.send(dialer.hello)
    })
    await world.settle()
    return peer
  }

  sendFrame(bytes: Uint8Array): void { this.#connection.send(bytes) }

  send(messages: readonly { readonly header: Uint8Array; readonly payload?: Uint8Array }[]): void {
    const outgoing = messages.map(({ header, payload = new Uint8Array() }): OutgoingMessage => (
      { header, payload: [payload], bytes: header.length + payload.length }))
    this.#encoder.encode(outgoing, frame => { this.#connection.send(frame) })
  }

  stopReading(): void { this.#connection.pause() }

  close(): void { this.#connection.close('done') }
}
