import { ReplicaError } from '@sectional/core'
import type { CallContext, ReplicaErrorCode } from '@sectional/core'
import type { Clock, Connection, Log, Timer } from '@sectional/runtime'
import { FrameDecoder, FrameEncoder } from '../frame/frame-codec.ts'
import type { OutgoingMessage, RawMessage, SealFrames } from '../frame/frame-codec.ts'
import { Outbox } from '../frame/outbox.ts'
import type { RpcLimits } from './limits.ts'
import type { RpcMetrics } from './rpc-metrics.ts'
import { PayloadReader } from '../schema/payload.ts'
import { messageHeaderType, ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { CallClass } from './call-budget.ts'
import { CallsOut, encodeMessage } from './calls-out.ts'
import { CallsServed } from './calls-served.ts'
import type { Work } from './calls-served.ts'
import type { Established, LinkIdentity } from './handshake.ts'
import { ScanReader } from './scan-reader.ts'
import { sendUpload } from './upload.ts'
import type { WireCall, WireScan, WireUpload } from './wire-verb.ts'

/**
 * New work is refused when more than `maxQueuedBytes` are queued. The link to a peer that does not even read the
 * refusals is closed when this many times as many bytes are queued.
 */
const unreadFactorMax = 2

/** Serves the calls and messages that arrive on the node's links. */
export interface LinkService {
  /** Resolves with whether the far end of a link answers within `timeoutMs` milliseconds. */
  probe(link: PeerLink, timeoutMs: number): Promise<boolean>
  /** Returns the class of a peer's call (see `CallsServedOptions.classOf`). @throws ProtocolError */
  classOf(call: WireMessage): CallClass
  /** @throws ProtocolError, ReplicaError (see `CallsServedOptions.prepare`) */
  prepare(peer: LinkIdentity, call: WireMessage, payload: PayloadReader): Work
  /** Receives an encoded consensus message. @throws ProtocolError */
  receiveRaft(peer: LinkIdentity, message: WireMessage, payload: PayloadReader): void
}

export interface PeerLinkOptions {
  readonly connection: Connection
  readonly established: Established
  /** True when this node has dialed, false when the peer has. */
  readonly dialed: boolean
  readonly clock: Clock
  readonly limits: RpcLimits
  readonly sealFrames?: SealFrames | undefined
  readonly metrics: RpcMetrics
  readonly log: Log
  readonly service: LinkService
  /** Called when this link's calls have ended or the peer retires it, so that a link may now be retired. */
  readonly onQuiet: (link: PeerLink) => void
  /** Called once, when the link has closed. */
  readonly onClosed: (link: PeerLink, reason: string) => void
}

/** One open, authenticated connection. Both ends make calls on it. */
export class PeerLink {
  readonly peer: LinkIdentity
  readonly dialed: boolean
  readonly #options: PeerLinkOptions
  readonly #outbox: Outbox
  readonly #decoder: FrameDecoder
  readonly #callsOut: CallsOut
  readonly #callsServed: CallsServed
  #heartbeat: Timer
  #lastReceivedMs: number
  #lastTickMs: number
  #retireSent = false
  #retireReceived = false
  #stoppingSent = false
  /**
   * Resolves when the peer has sent that it begins no more calls, because it is stopping or knows that this node is.
   */
  readonly #peerStopping = Promise.withResolvers<void>()
  #closed = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(options: PeerLinkOptions) {
    const { connection, established, clock, limits, sealFrames, metrics, log, service } = options
    this.#options = options
    this.peer = established.peer
    this.dialed = options.dialed
    this.#outbox = new Outbox(connection, new FrameEncoder(established.sendKey, limits, sealFrames), clock, metrics)
    this.#decoder = new FrameDecoder(established.receiveKey, limits, sealFrames)
    const outbox = this.#outbox
    this.#callsOut = new CallsOut({
      peerNode: this.peer.node, outbox, clock, limits, metrics, onIdle: () => options.onQuiet(this),
    })
    this.#callsServed = new CallsServed({
      outbox, clock, limits, metrics, log,
      classOf: call => service.classOf(call),
      prepare: (call, payload) => service.prepare(this.peer, call, payload),
    })
    this.#lastReceivedMs = this.#lastTickMs = clock.monotonic()
    this.#heartbeat = clock.setTimer(limits.heartbeatMs, this.#tick)
  }

  get queuedBytes(): number { return this.#outbox.queuedBytes }

  /** False when the link is closed, when both ends have retired it, or when either end is stopping. */
  get usable(): boolean { return !this.#closed && !this.#retired && !this.#stoppingSent }

  call<Request, Reply>(
    verb: WireCall<Request, Reply>, shard: object | null, request: Request, context: CallContext,
  ): Promise<Reply> {
    return this.#callsOut.call(verb, shard, request, context)
  }

  scan<Request, Row>(
    verb: WireScan<Request, Row>, shard: object, request: Request, context: CallContext,
  ): AsyncIterator<readonly Row[]> {
    return new ScanReader(this.#callsOut, verb, shard, request, context)
  }

  upload<Reply>(
    verb: WireUpload<Reply>, shard: object, chunks: AsyncIterable<Uint8Array>, context: CallContext,
  ): Promise<Reply> {
    return sendUpload(this.#callsOut, verb, shard, chunks, context)
  }

  /** The version of the protocol that both ends use. */
  get version(): number { return this.#options.established.version }

  /** False when one-way messages must be dropped, because the link is closed or too many bytes are queued. */
  get takesOneWay(): boolean {
    return !this.#closed && this.#outbox.queuedBytes <= this.#options.limits.maxRaftQueuedBytes
  }

  /** Sends a message that is not a call and gets no answer. */
  sendOneWay(message: OutgoingMessage): void { if (!this.#closed) this.#outbox.add(message) }

  /** Handles one frame of the connection. It never throws; an invalid frame ends the link. */
  receive(frame: Uint8Array): void {
    if (this.#closed) return
    this.#lastReceivedMs = this.#options.clock.monotonic()
    try {
      const messages = this.#decoder.decode(frame)
      this.#options.metrics.received(messages.length, frame.length)
      for (const message of messages) {
        if (!this.#closed) this.#dispatch(message)
      }
    } catch (error) {
      const expected = error instanceof ProtocolError
      const reason = expected ? error.message : 'a frame could not be handled'
      this.#options.log.error(
        { peer: this.peer.node, reason, ...(!expected && { err: error }) },
        'a peer broke the protocol: the link is closed',
      )
      this.close(`protocol: ${reason}`, 'protocol')
    }
  }

  /**
   * Called when a better link to the same node is open. As soon as it has no open calls, the side that dialed sends
   * that it begins no more calls on this link. The other side answers in the same way, and then the link closes.
   */
  retire(): void {
    if (this.#closed || this.#retireSent || this.#callsOut.size > 0) return
    if (!this.dialed && !this.#retireReceived) return
    this.#retireSent = true
    this.#outbox.add(encodeMessage({ retire: {} }, undefined))
  }

  /**
   * Announces that this node is stopping. Resolves when the peer begins no more calls on this link and the calls that
   * it has begun were answered, or when the link has closed. If the link is closed after that, no call of the peer has
   * an unknown outcome.
   */
  async drain(): Promise<void> {
    if (this.#closed) return
    const answered = this.#callsServed.drain()
    this.#sendStopping()
    await Promise.race([this.#ended.promise, Promise.all([answered, this.#peerStopping.promise])])
  }

  #sendStopping(): void {
    if (this.#stoppingSent) return
    this.#stoppingSent = true
    this.#outbox.add(encodeMessage({ retire: { stopping: true } }, undefined))
  }

  /** Sends the queued messages, closes the connection, fails the open calls with `code` and aborts the served ones. */
  close(reason: string, code: ReplicaErrorCode = 'unreachable'): void {
    if (this.#closed) return
    this.#outbox.flush()
    this.#options.connection.close(reason)
    this.connectionClosed(reason, code)
  }

  /** Called when the connection has closed. */
  connectionClosed(reason: string, code: ReplicaErrorCode = 'unreachable'): void {
    if (this.#closed) return
    this.#closed = true
    this.#heartbeat.cancel()
    this.#ended.resolve()
    this.#outbox.close()
    this.#callsServed.close()
    this.#callsOut.close(new ReplicaError(code, `the link to ${this.peer.node} closed: ${reason}`))
    this.#options.onClosed(this, reason)
  }

  get #retired(): boolean { return this.#retireSent && this.#retireReceived }

  #dispatch(raw: RawMessage): void {
    const message = messageHeaderType.decode(raw.header)
    const content: string | undefined = message.content
    const payload = new PayloadReader(raw.payload)
    switch (content) {
      case 'call': return this.#callsServed.begin(message.id, message.call, payload)
      case 'cancel': return this.#callsServed.cancel(message.id)
      case 'credit': return this.#callsServed.credit(message.id, message.credit.pages, message.credit.bytes)
      case 'chunk': return this.#callsServed.chunk(message.id, payload.rest(), message.chunk.last)
      case 'reply': case 'failure': case 'page': case 'end': case 'grant': return this.#callsOut.receive(
        message.id, content, message[content], payload,
      )
      case 'raft': return this.#options.service.receiveRaft(this.peer, message.raft, payload)
      case 'heartbeat': return
      case 'retire': return message.retire.stopping ? this.#receiveStopping() : this.#receiveRetire()
      default: throw new ProtocolError('a message of unknown content')
    }
  }

  #receiveStopping(): void {
    this.#peerStopping.resolve()
    this.#sendStopping()
  }

  #receiveRetire(): void {
    this.#retireReceived = true
    if (this.dialed && this.#retired) return this.close('a better link is open')
    this.#options.onQuiet(this)
  }

  readonly #tick = (): void => {
    const { clock, limits } = this.#options
    const nowMs = clock.monotonic()
    // When this process itself was suspended, it has not yet read what the peer sent in that time.
    if (nowMs - this.#lastTickMs > 2 * limits.heartbeatMs) this.#lastReceivedMs = nowMs
    this.#lastTickMs = nowMs
    if (nowMs - this.#lastReceivedMs > limits.silenceMs) {
      return this.close(`nothing was received for ${limits.silenceMs} ms`)
    }
    if (this.#outbox.queuedBytes > unreadFactorMax * limits.maxQueuedBytes) {
      return this.close('the peer does not read the messages that are sent to it')
    }
    if (!this.#outbox.active) this.#outbox.add(encodeMessage({ heartbeat: {} }, undefined))
    this.#outbox.active = false
    this.#heartbeat = clock.setTimer(limits.heartbeatMs, this.#tick)
  }
}
