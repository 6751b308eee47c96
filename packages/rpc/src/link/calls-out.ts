import { ReplicaError, replicaErrorCodes } from '@sectional/core'
import type { CallContext, ReplicaErrorCode } from '@sectional/core'
import type { Clock, Timer } from '@sectional/runtime'
import type { OutgoingMessage } from '../frame/frame-codec.ts'
import type { Outbox } from '../frame/outbox.ts'
import type { RpcLimits } from './limits.ts'
import type { RpcMetrics } from './rpc-metrics.ts'
import { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { messageHeaderType, ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { CallBudget } from './call-budget.ts'
import type { CallClass } from './call-budget.ts'
import type { WireCall } from './wire-verb.ts'

/** A call or stream that waits for messages of the peer. */
export interface Exchange {
  readonly verb: string
  /** The class in which the call is counted. */
  readonly kind: CallClass
  /** @throws ProtocolError when the message is not one that this exchange waits for */
  receive(content: string, message: WireMessage, payload: PayloadReader): void
  fail(error: ReplicaError): void
}

/** Longest delay that a timer accepts, 24 days. Longer timeouts are shortened to it. */
const maxTimerMs = 2 ** 31 - 1

export function timerMs(timeoutMs: number): number { return Math.min(timeoutMs, maxTimerMs) }

const knownCodes: ReadonlySet<string> = new Set(replicaErrorCodes)

const notSent = { nothingDone: true } as const

/** Converts the peer's answer to a call that failed there into an error. */
export function failureError(failure: WireMessage): ReplicaError {
  return knownCodes.has(failure.code)
    ? new ReplicaError(
      failure.code as ReplicaErrorCode, failure.reason, { nothingDone: failure.nothingDone },
    )
    : new ReplicaError('protocol', `the peer failed with the unknown code ${failure.code}: ${failure.reason}`)
}

export function encodeMessage(header: object, payload: PayloadWriter | undefined): OutgoingMessage {
  return withPayload(messageHeaderType.encode(header), payload)
}

/** @throws ReplicaError for a text that the peer would read as another one, such as the id of another document */
function encodeCall(header: object, payload: PayloadWriter): OutgoingMessage {
  return withPayload(messageHeaderType.encodeExactly(header), payload)
}

function withPayload(encoded: Uint8Array, payload: PayloadWriter | undefined): OutgoingMessage {
  return { header: encoded, payload: payload?.chunks ?? [], bytes: encoded.length + (payload?.bytes ?? 0) }
}

export interface CallsOutOptions {
  readonly peerNode: string
  readonly outbox: Outbox
  readonly clock: Clock
  readonly limits: RpcLimits
  readonly metrics: RpcMetrics
  /** Called when no call waits for an answer any more. */
  readonly onIdle: () => void
}

/** The calls of this node on one link, by their ids. */
export class CallsOut {
  readonly options: CallsOutOptions
  readonly #exchanges = new Map<number, Exchange>()
  readonly #budget: CallBudget
  #lastId = 0
  #closed: ReplicaError | undefined

  constructor(options: CallsOutOptions) {
    const { maxCallsOut, maxWaitsOut, maxControlCallsOut } = options.limits
    this.options = options
    this.#budget = new CallBudget({ data: maxCallsOut, wait: maxWaitsOut, control: maxControlCallsOut })
  }

  get size(): number { return this.#exchanges.size }

  /** @param shard the encoded id of the shard; null: the call concerns no shard */
  call<Request, Reply>(
    verb: WireCall<Request, Reply>, shard: object | null, request: Request, context: CallContext,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => { new PendingCall(this, verb, shard, request, context, resolve, reject) })
  }

  /**
   * Sends the call.
   *
   * @param shard the encoded id of the shard; null: the call concerns no shard
   * @param request the encoded request of the verb
   * @returns the id of the call
   * @throws ReplicaError when the call cannot begin
   */
  begin(
    exchange: Exchange, shard: object | null, request: object, payload: PayloadWriter, context: CallContext,
  ): number {
    const { limits, outbox, peerNode } = this.options
    if (this.#closed) throw new ReplicaError(this.#closed.code, this.#closed.message, notSent)
    if (context.signal?.aborted) throw new ReplicaError('cancelled', `${exchange.verb} was cancelled`, notSent)
    if (!(context.timeoutMs > 0)) throw new ReplicaError('timeout', `no time is left for ${exchange.verb}`, notSent)
    const { kind } = exchange
    this.#budget.check(kind, limit => `${limit} ${kind} calls wait for ${peerNode}`)
    const { queuedBytes } = outbox
    if (queuedBytes > limits.maxQueuedBytes) {
      throw new ReplicaError('overloaded', `${queuedBytes} bytes wait to be sent to ${peerNode}`)
    }
    const id = this.#nextId()
    const { requestId, history } = context
    const call = { timeoutMs: timerMs(context.timeoutMs), requestId, history, shard, [exchange.verb]: request }
    const message = encodeCall({ id, call }, payload)
    if (message.bytes > limits.maxMessageBytes) {
      const reason =
        `${exchange.verb} has ${message.bytes} bytes, more than the limit of ${limits.maxMessageBytes} bytes: `
          + 'send it in parts'
      throw new ReplicaError('protocol', reason, notSent)
    }
    this.#exchanges.set(id, exchange)
    this.#budget.begin(kind)
    outbox.add(message)
    return id
  }

  /** Receives a message about one of this node's calls. Answers to calls that have ended here are dropped. */
  receive(id: number, content: string, message: WireMessage, payload: PayloadReader): void {
    this.#exchanges.get(id)?.receive(content, message, payload)
  }

  send(header: object): void { this.options.outbox.add(encodeMessage(header, undefined)) }

  /** Ends an exchange: it receives no further messages and is no longer counted. */
  end(id: number): void {
    const ended = this.#exchanges.get(id)
    if (ended === undefined) return
    this.#exchanges.delete(id)
    this.#budget.end(ended.kind)
    if (this.#exchanges.size === 0) this.options.onIdle()
  }

  /** Fails the open calls, and all calls that are begun later. */
  close(error: ReplicaError): void {
    this.#closed = error
    for (const exchange of [...this.#exchanges.values()]) exchange.fail(error)
    this.#exchanges.clear()
  }

  #nextId(): number {
    do this.#lastId = this.#lastId === 0xffffffff ? 1 : this.#lastId + 1
    while (this.#exchanges.has(this.#lastId))
    return this.#lastId
  }
}

class PendingCall<Request, Reply> implements Exchange {
  readonly kind: CallClass
  readonly #calls: CallsOut
  readonly #verb: WireCall<Request, Reply>
  readonly #context: CallContext
  readonly #resolve: (reply: Reply) => void
  readonly #reject: (error: ReplicaError) => void
  readonly #startedMs: number
  readonly #id: number = 0
  readonly #timer: Timer | undefined

  constructor(
    calls: CallsOut, verb: WireCall<Request, Reply>, shard: object | null, request: Request, context: CallContext,
    resolve: (reply: Reply) => void, reject: (error: ReplicaError) => void,
  ) {
    const { clock } = calls.options
    this.kind = verb.classOf(request)
    this.#calls = calls
    this.#verb = verb
    this.#context = context
    this.#resolve = resolve
    this.#reject = reject
    this.#startedMs = clock.monotonic()
    try {
      const payload = new PayloadWriter()
      this.#id = calls.begin(this, shard, verb.encodeRequest(request, payload), payload, context)
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
      this.fail(error)
      return
    }
    this.#timer = clock.setTimer(timerMs(context.timeoutMs), this.#timedOut)
    context.signal?.addEventListener('abort', this.#aborted, { once: true })
  }

  get verb(): string { return this.#verb.name }

  receive(content: string, message: WireMessage, payload: PayloadReader): void {
    if (content === 'failure') return this.fail(failureError(message))
    if (content !== 'reply' || message.verb !== this.verb) {
      throw new ProtocolError(`${this.verb} was answered with something else`)
    }
    const reply = this.#verb.decodeReply(required(message[this.#verb.name], 'reply'), payload)
    payload.finish()
    this.#settle('ok')
    this.#resolve(reply)
  }

  fail(error: ReplicaError): void {
    this.#settle(error.code)
    this.#reject(error)
  }

  #settle(outcome: string): void {
    const { clock, metrics } = this.#calls.options
    this.#timer?.cancel()
    this.#context.signal?.removeEventListener('abort', this.#aborted)
    this.#calls.end(this.#id)
    metrics.called(this.#verb.name, outcome, (clock.monotonic() - this.#startedMs) / 1000)
  }

  readonly #timedOut = (): void => {
    const { peerNode } = this.#calls.options
    this.#giveUp(
      new ReplicaError('timeout', `${peerNode} did not answer ${this.#verb.name} within ${this.#context.timeoutMs} ms`),
    )
  }

  readonly #aborted = (): void => { this.#giveUp(new ReplicaError('cancelled', `${this.#verb.name} was cancelled`)) }

  #giveUp(error: ReplicaError): void {
    this.#calls.send({ id: this.#id, cancel: {} })
    this.fail(error)
  }
}
