import { ReplicaError } from '@sectional/core'
import type { CallContext, ReplicaErrorCode } from '@sectional/core'
import type { Clock, Log, Timer } from '@sectional/runtime'
import type { Outbox } from '../frame/outbox.ts'
import type { RpcLimits } from './limits.ts'
import type { RpcMetrics } from './rpc-metrics.ts'
import { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { CallBudget } from './call-budget.ts'
import type { CallClass } from './call-budget.ts'
import { encodeMessage } from './calls-out.ts'
import { ChunkQueue } from './chunk-queue.ts'

/** UTF-16 units of the reason of a failure that is sent to the peer. Texts of users may be in it. */
const failureReasonMax = 5000

const stopping = 'the called node is stopping'

/** A reply or a page, with the fields of its message and the payload that follows it. */
export interface Answer { readonly fields: object; readonly payload: PayloadWriter }

/** The work that serves a peer's call, by the shape of its answer. */
export type Work =
  | { readonly kind: 'reply'; run(context: CallContext): Promise<Answer> }
  | { readonly kind: 'pages'; run(context: CallContext): AsyncIterable<Answer> }
  | { readonly kind: 'upload'; run(context: CallContext, chunks: AsyncIterable<Uint8Array>): Promise<Answer> }

export interface CallsServedOptions {
  readonly outbox: Outbox
  readonly clock: Clock
  readonly limits: RpcLimits
  readonly metrics: RpcMetrics
  readonly log: Log
  /** Returns the class in which a call is counted. @throws ProtocolError for a malformed request */
  readonly classOf: (call: WireMessage) => CallClass
  /** @throws ProtocolError for a malformed request, ReplicaError for a request that cannot be served on this node */
  readonly prepare: (call: WireMessage, payload: PayloadReader) => Work
}

/** The peer's calls on one link, by the ids that the peer has chosen. */
export class CallsServed {
  readonly options: CallsServedOptions
  readonly #calls = new Map<number, ServedCall>()
  readonly #budget: CallBudget
  #payloadBytes = 0
  #closed = false
  /** True when this node is stopping. Further calls are then refused. */
  #refusing = false
  #onDrained: (() => void) | undefined

  constructor(options: CallsServedOptions) {
    const { maxCallsServed, maxWaitsServed, maxControlCallsServed } = options.limits
    this.options = options
    this.#budget = new CallBudget({ data: maxCallsServed, wait: maxWaitsServed, control: maxControlCallsServed })
  }

  get size(): number { return this.#calls.size }

  /** @throws ProtocolError when the id is in use */
  begin(id: number, call: WireMessage, payload: PayloadReader): void {
    const { limits, classOf, prepare } = this.options
    if (this.#calls.has(id)) throw new ProtocolError(`call ${id} began twice`)
    const verb: string = call.verb ?? 'unknown'
    const bytes = payload.left
    let kind: CallClass
    let work: Work
    try {
      if (this.#refusing) throw new ReplicaError('unreachable', stopping, { nothingDone: true })
      kind = classOf(call)
      this.#budget.check(
        kind, limit => `this node already serves ${limit} ${kind} calls of its peer, as many as it may`,
      )
      if (this.#payloadBytes > 0 && this.#payloadBytes + bytes > limits.maxServedBytes) {
        const reason = `this node already serves calls of its peer with ${this.#payloadBytes} bytes; `
          + `at most ${limits.maxServedBytes} are allowed`
        throw new ReplicaError('overloaded', reason)
      }
      if (!(call.timeoutMs > 0)) throw new ProtocolError('the timeout is not a positive number')
      work = prepare(call, payload)
    } catch (error) {
      return this.fail(id, verb, error)
    }
    const served = new ServedCall(this, id, { verb, kind }, call, bytes)
    this.#calls.set(id, served)
    this.#budget.begin(kind)
    this.#payloadBytes += bytes
    void served.run(work)
  }

  cancel(id: number): void {
    this.#calls.get(id)?.cancel(new ReplicaError('cancelled', 'the caller cancelled the call'))
  }

  credit(id: number, pages: number, bytes: number): void { this.#calls.get(id)?.grant(pages, bytes) }

  /** Receives a piece of an upload. A piece for a call that has ended is dropped. @throws ProtocolError */
  chunk(id: number, bytes: Uint8Array, last: boolean): void { this.#calls.get(id)?.receive(bytes, last) }

  /** Ends the calls that wait for changes and refuses new calls. Resolves when all other calls have been answered. */
  drain(): Promise<void> {
    this.#refusing = true
    for (const call of [...this.#calls.values()]) {
      if (call.kind === 'wait') call.cancel(new ReplicaError('unreachable', stopping))
    }
    return this.#calls.size === 0 ? Promise.resolve() : new Promise(resolve => { this.#onDrained = resolve })
  }

  /** Aborts all calls. None of them is answered any more. */
  close(): void {
    this.#closed = true
    for (const call of [...this.#calls.values()]) {
      call.cancel(new ReplicaError('unreachable', 'the link to the caller has closed'))
    }
  }

  end(call: ServedCall): void {
    this.#calls.delete(call.id)
    this.#budget.end(call.kind)
    this.#payloadBytes -= call.payloadBytes
    if (this.#calls.size === 0) this.#onDrained?.()
  }

  /** Sends one answer. @throws ReplicaError when the answer is too large or the peer does not read its answers */
  answer(id: number, verb: string, content: 'reply' | 'page', { fields, payload }: Answer): void {
    const { outbox, limits } = this.options
    const message = encodeMessage({ id, [content]: fields }, payload)
    if (message.bytes > limits.maxMessageBytes) {
      const reason = `the answer to ${verb} has ${message.bytes} bytes, more than the limit of `
        + `${limits.maxMessageBytes} bytes: request it in parts`
      throw new ReplicaError('protocol', reason)
    }
    if (outbox.queuedBytes > limits.maxQueuedBytes) {
      // The work has been done, in contrast to a call that is refused at its beginning.
      throw new ReplicaError('overloaded', 'the caller does not read its answers', { nothingDone: false })
    }
    outbox.add(message)
  }

  fail(id: number, verb: string, error: unknown): void {
    const { code, reason, nothingDone } = this.#describe(verb, error)
    this.options.metrics.served(verb, code)
    if (this.#closed) return
    const failure = { code, reason: reason.slice(0, failureReasonMax), nothingDone }
    this.options.outbox.add(encodeMessage({ id, failure }, undefined))
  }

  #describe(
    verb: string, error: unknown,
  ): { readonly code: ReplicaErrorCode; readonly reason: string; readonly nothingDone?: boolean } {
    if (error instanceof ReplicaError) {
      return { code: error.code, reason: error.message, nothingDone: error.nothingDone }
    }
    if (error instanceof ProtocolError) {
      this.options.log.warn({ verb, reason: error.message }, 'a peer sent a malformed request')
      return { code: 'protocol', reason: error.message }
    }
    this.options.log.error({ verb, err: error }, 'a call of a peer failed unexpectedly')
    return { code: 'storage', reason: 'an unexpected failure, see the log of that node' }
  }
}

/**
 * One call that is being served. It is its own context. The abort signal is created on first use, because most calls
 * end without using it.
 */
class ServedCall implements CallContext {
  readonly id: number
  readonly kind: CallClass
  readonly payloadBytes: number
  readonly timeoutMs: number
  readonly requestId?: string
  readonly history?: string
  readonly #calls: CallsServed
  readonly #verb: string
  #controller: AbortController | undefined
  #cancelled: ReplicaError | undefined
  #creditPages: number
  #creditBytes: number
  #creditWaiter: (() => void) | undefined
  #stallTimer: Timer | undefined
  #chunks: ChunkQueue | undefined

  constructor(
    calls: CallsServed, id: number, { verb, kind }: { readonly verb: string; readonly kind: CallClass },
    call: WireMessage, payloadBytes: number,
  ) {
    this.#calls = calls
    this.id = id
    this.kind = kind
    this.#verb = verb
    this.payloadBytes = payloadBytes
    this.timeoutMs = call.timeoutMs
    if (call.requestId !== null) this.requestId = call.requestId
    if (call.history !== null) this.history = call.history
    this.#creditPages = calls.options.limits.streamPages
    this.#creditBytes = calls.options.limits.streamBytes
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#cancelled) this.#controller.abort(this.#cancelled)
    }
    return this.#controller.signal
  }

  cancel(reason: ReplicaError): void {
    if (this.#cancelled) return
    this.#cancelled = reason
    this.#controller?.abort(reason)
    this.#chunks?.fail(reason)
    this.#wake()
  }

  grant(pages: number, bytes: number): void {
    this.#creditPages += pages
    this.#creditBytes += bytes
    if (this.#hasCredit()) this.#wake()
  }

  /** Never rejects. */
  async run(work: Work): Promise<void> {
    try {
      if (work.kind !== 'pages') {
        const answer = await (work.kind === 'reply' ? work.run(this) : work.run(this, this.#openUpload()))
        if (!this.#cancelled) this.#calls.answer(this.id, this.#verb, 'reply', answer)
      } else {
        await this.#sendPages(work.run(this))
      }
      this.#calls.options.metrics.served(this.#verb, this.#cancelled?.code ?? 'ok')
    } catch (error) {
      this.#calls.fail(this.id, this.#verb, this.#cancelled ?? error)
    } finally {
      this.#calls.end(this)
    }
  }

  receive(bytes: Uint8Array, last: boolean): void {
    if (this.#chunks === undefined) throw new ProtocolError(`${this.#verb} takes no content`)
    this.#chunks.add(bytes, last)
  }

  #openUpload(): ChunkQueue {
    const { clock, limits, outbox } = this.#calls.options
    this.#chunks = new ChunkQueue({
      clock, windowBytes: limits.uploadBytes, stallMs: limits.streamStallMs,
      onTaken: bytes => { if (!this.#cancelled) outbox.add(
        encodeMessage({ id: this.id, grant: { bytes } }, undefined),
      ) },
      onStalled: () =>
        this.cancel(
          new ReplicaError('timeout', `the sender of ${this.#verb} sent nothing for ${limits.streamStallMs} ms`),
        ),
    })
    return this.#chunks
  }

  async #sendPages(pages: AsyncIterable<Answer>): Promise<void> {
    for await (const page of pages) {
      while (!this.#cancelled && !this.#hasCredit()) await this.#waitForCredit()
      if (this.#cancelled) break
      this.#creditPages--
      this.#creditBytes -= page.payload.bytes
      this.#calls.answer(this.id, this.#verb, 'page', page)
    }
    if (this.#cancelled) throw this.#cancelled
    this.#calls.options.outbox.add(encodeMessage({ id: this.id, end: {} }, undefined))
  }

  #hasCredit(): boolean { return this.#creditPages > 0 && this.#creditBytes > 0 }

  #waitForCredit(): Promise<void> {
    const { clock, limits } = this.#calls.options
    return new Promise(resolve => {
      this.#creditWaiter = resolve
      this.#stallTimer = clock.setTimer(limits.streamStallMs, () => {
        this.cancel(
          new ReplicaError('timeout', `the reader of ${this.#verb} took nothing for ${limits.streamStallMs} ms`),
        )
      })
    })
  }

  #wake(): void {
    this.#stallTimer?.cancel()
    this.#stallTimer = undefined
    const waiter = this.#creditWaiter
    this.#creditWaiter = undefined
    waiter?.()
  }
}
