import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { failureError, timerMs } from './calls-out.ts'
import type { CallsOut, Exchange } from './calls-out.ts'
import type { WireScan } from './wire-verb.ts'

interface Waiter<Row> {
  resolve(result: IteratorResult<readonly Row[]>): void
  reject(error: ReplicaError): void
}

interface KeptPage<Row> { readonly rows: readonly Row[]; readonly bytes: number }

/**
 * The reading end of a stream. The first `next` sends the call. Pages that arrive are kept until the reader takes them,
 * at most as many as the window allows. When the reader takes a page, the credit for it is granted to the sender. The
 * context's timeout bounds the wait for each page, not the whole scan, so that a slow reader causes no error.
 */
export class ScanReader<Request, Row> implements AsyncIterator<readonly Row[], undefined>, Exchange {
  readonly kind = 'data'
  readonly #calls: CallsOut
  readonly #verb: WireScan<Request, Row>
  readonly #shard: object
  readonly #request: Request
  readonly #context: CallContext
  #state: 'new' | 'open' | 'ended' = 'new'
  #id = 0
  #startedMs = 0
  #pages: KeptPage<Row>[] = []
  #keptBytes = 0
  #error: ReplicaError | undefined
  #waiter: Waiter<Row> | undefined
  #timer: Timer | undefined

  /** @param shard the encoded id of the shard */
  constructor(calls: CallsOut, verb: WireScan<Request, Row>, shard: object, request: Request, context: CallContext) {
    this.#calls = calls
    this.#verb = verb
    this.#shard = shard
    this.#request = request
    this.#context = context
  }

  get verb(): string { return this.#verb.name }

  next(): Promise<IteratorResult<readonly Row[], undefined>> {
    return new Promise((resolve, reject) => {
      if (this.#waiter) throw new Error(`next was called while the previous next of ${this.verb} waits`)
      if (this.#state === 'new') this.#open()
      const page = this.#pages.shift()
      if (page) {
        this.#keptBytes -= page.bytes
        if (this.#state === 'open') this.#calls.send({ id: this.#id, credit: { pages: 1, bytes: page.bytes } })
        return resolve({ done: false, value: page.rows })
      }
      if (this.#error) {
        const error = this.#error
        this.#error = undefined
        return reject(error)
      }
      if (this.#state === 'ended') return resolve({ done: true, value: undefined })
      this.#waiter = { resolve, reject }
      this.#timer = this.#calls.options.clock.setTimer(timerMs(this.#context.timeoutMs), this.#timedOut)
    })
  }

  /** Ends the scan here and at the far end. It may be called while a `next` waits. */
  async return(): Promise<IteratorResult<readonly Row[], undefined>> {
    if (this.#state === 'open') {
      this.#calls.send({ id: this.#id, cancel: {} })
      this.#finish('returned')
    }
    this.#state = 'ended'
    this.#pages = []
    this.#error = undefined
    this.#wake()
    return { done: true, value: undefined }
  }

  receive(content: string, message: WireMessage, payload: PayloadReader): void {
    switch (content) {
      case 'page': return this.#received(message, payload)
      case 'end': this.#finish('ok'); return this.#wake()
      case 'failure': return this.fail(failureError(message))
      default: throw new ProtocolError(`${this.verb} was answered with something else`)
    }
  }

  fail(error: ReplicaError): void {
    this.#finish(error.code)
    this.#error = error
    this.#wake()
  }

  #open(): void {
    const { clock } = this.#calls.options
    this.#startedMs = clock.monotonic()
    this.#state = 'open'
    try {
      this.#id = this.#calls.begin(
        this, this.#shard, this.#verb.encodeRequest(this.#request), new PayloadWriter(), this.#context,
      )
      this.#context.signal?.addEventListener('abort', this.#aborted, { once: true })
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
      this.fail(error)
    }
  }

  #received(message: WireMessage, payload: PayloadReader): void {
    const { streamPages, streamBytes } = this.#calls.options.limits
    if (this.#pages.length >= streamPages || this.#keptBytes >= streamBytes) {
      throw new ProtocolError(`${this.verb} exceeded its credit`)
    }
    if (message.rows !== this.#verb.rows) throw new ProtocolError(`${this.verb} was answered with rows of another kind`)
    const bytes = payload.left
    const wireRows: readonly WireMessage[] = required(message[this.#verb.rows], 'rows').rows
    const rows = wireRows.map(row => this.#verb.decodeRow(row, payload))
    payload.finish()
    this.#pages.push({ rows, bytes })
    this.#keptBytes += bytes
    this.#wake()
  }

  /** Settles the waiting `next`, if there is one, with the present state. */
  #wake(): void {
    const waiter = this.#waiter
    if (!waiter) return
    this.#waiter = undefined
    this.#timer?.cancel()
    this.#timer = undefined
    this.next().then(waiter.resolve, waiter.reject)
  }

  #finish(outcome: string): void {
    if (this.#state !== 'open') return
    const { clock, metrics } = this.#calls.options
    this.#state = 'ended'
    this.#context.signal?.removeEventListener('abort', this.#aborted)
    this.#calls.end(this.#id)
    metrics.called(this.verb, outcome, (clock.monotonic() - this.#startedMs) / 1000)
  }

  readonly #timedOut = (): void => {
    this.#giveUp(new ReplicaError(
      'timeout', `${this.#calls.options.peerNode} sent no page of ${this.verb} within ${this.#context.timeoutMs} ms`,
    ))
  }

  readonly #aborted = (): void => { this.#giveUp(new ReplicaError('cancelled', `${this.verb} was cancelled`)) }

  #giveUp(error: ReplicaError): void {
    this.#calls.send({ id: this.#id, cancel: {} })
    this.#pages = []
    this.fail(error)
  }
}
