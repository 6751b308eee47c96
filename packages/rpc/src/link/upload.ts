import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { encodeMessage, failureError, timerMs } from './calls-out.ts'
import type { CallsOut, Exchange } from './calls-out.ts'
import type { WireUpload } from './wire-verb.ts'

/** A longer chunk is split into messages of this size, so that other messages can be sent between them. */
const pieceBytesMax = 128 * 1024

/**
 * Sends a call and then its chunks, as many bytes ahead as the far end grants, and resolves with the reply. The
 * context's timeout bounds each wait for the far end, but no wait for `chunks`. When `chunks` throws, the call is
 * cancelled at the far end, and it rejects with the thrown error.
 *
 * @param shard the encoded id of the shard
 */
export function sendUpload<Reply>(
  calls: CallsOut, verb: WireUpload<Reply>, shard: object, chunks: AsyncIterable<Uint8Array>, context: CallContext,
): Promise<Reply> {
  return new Promise((resolve, reject) => { void new Upload(calls, verb, context, resolve, reject).run(shard, chunks) })
}

class Upload<Reply> implements Exchange {
  readonly kind = 'data'
  readonly #calls: CallsOut
  readonly #verb: WireUpload<Reply>
  readonly #context: CallContext
  readonly #resolve: (reply: Reply) => void
  readonly #reject: (error: unknown) => void
  readonly #startedMs: number
  #id = 0
  #window: number
  #wake: (() => void) | undefined
  #timer: Timer | undefined
  #settled = false

  constructor(
    calls: CallsOut, verb: WireUpload<Reply>, context: CallContext, resolve: (reply: Reply) => void,
    reject: (error: unknown) => void,
  ) {
    this.#calls = calls
    this.#verb = verb
    this.#context = context
    this.#resolve = resolve
    this.#reject = reject
    this.#window = calls.options.limits.uploadBytes
    this.#startedMs = calls.options.clock.monotonic()
  }

  get verb(): string { return this.#verb.name }

  /** Never rejects. */
  async run(shard: object, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      const payload = new PayloadWriter()
      this.#id = this.#calls.begin(this, shard, this.#verb.encodeRequest(undefined, payload), payload, this.#context)
      this.#context.signal?.addEventListener('abort', this.#aborted, { once: true })
      for await (const chunk of chunks) {
        for (let at = 0; at < chunk.length; at += pieceBytesMax) {
          await this.#send(chunk.subarray(at, at + pieceBytesMax))
        }
        if (this.#settled) return
      }
      if (this.#settled) return
      this.#add(new Uint8Array(0), true)
      this.#watch()
    } catch (error) {
      if (!this.#settled && this.#id !== 0) this.#calls.send({ id: this.#id, cancel: {} })
      this.#settle(error instanceof ReplicaError ? error.code : 'cancelled', () => this.#reject(error))
    }
  }

  receive(content: string, message: WireMessage, payload: PayloadReader): void {
    switch (content) {
      case 'grant': return this.#granted(message.bytes)
      case 'failure': return this.fail(failureError(message))
      case 'reply': break
      default: throw new ProtocolError(`${this.verb} was answered with something else`)
    }
    if (message.verb !== this.verb) throw new ProtocolError(`${this.verb} was answered with something else`)
    const reply = this.#verb.decodeReply(required(message[this.verb], 'reply'), payload)
    payload.finish()
    this.#settle('ok', () => this.#resolve(reply))
  }

  fail(error: ReplicaError): void {
    this.#settle(error.code, () => this.#reject(error))
  }

  async #send(piece: Uint8Array): Promise<void> {
    while (this.#window <= 0 && !this.#settled) {
      this.#watch()
      await new Promise<void>(resolve => { this.#wake = resolve })
    }
    if (this.#settled) return
    this.#window -= piece.length
    this.#add(piece, false)
  }

  #add(piece: Uint8Array, last: boolean): void {
    const payload = new PayloadWriter()
    payload.add(piece)
    this.#calls.options.outbox.add(encodeMessage({ id: this.#id, chunk: { last } }, payload))
  }

  #granted(bytes: number): void {
    this.#window += bytes
    if (this.#window > this.#calls.options.limits.uploadBytes) {
      throw new ProtocolError(`${this.verb} was granted more than was sent`)
    }
    if (this.#window <= 0 || this.#wake === undefined) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#continue()
  }

  #continue(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  /** Starts the timeout, because the far end must act now: grant bytes or reply. */
  #watch(): void {
    const { clock, peerNode } = this.#calls.options
    this.#timer ??= clock.setTimer(timerMs(this.#context.timeoutMs), () => {
      this.#giveUp(
        new ReplicaError('timeout', `${peerNode} took nothing of ${this.verb} for ${this.#context.timeoutMs} ms`),
      )
    })
  }

  readonly #aborted = (): void => { this.#giveUp(new ReplicaError('cancelled', `${this.verb} was cancelled`)) }

  #giveUp(error: ReplicaError): void {
    this.#calls.send({ id: this.#id, cancel: {} })
    this.fail(error)
  }

  #settle(outcome: string, finish: () => void): void {
    if (this.#settled) return
    this.#settled = true
    const { clock, metrics } = this.#calls.options
    this.#timer?.cancel()
    this.#context.signal?.removeEventListener('abort', this.#aborted)
    this.#calls.end(this.#id)
    metrics.called(this.verb, outcome, (clock.monotonic() - this.#startedMs) / 1000)
    finish()
    this.#continue()
  }
}
