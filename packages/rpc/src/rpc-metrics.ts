import type { Counter, Gauge, Histogram, Metrics } from '@sectional/runtime'
import type { OutboxMeter } from './frame/outbox.ts'

const latencyBucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** What the package counts, for the whole node. */
export class RpcMetrics implements OutboxMeter {
  readonly #calls: Counter
  readonly #seconds: Histogram
  readonly #served: Counter
  readonly #frames: Counter
  readonly #messages: Counter
  readonly #bytes: Counter
  readonly #refused: Counter
  readonly #droppedRaft: Counter
  readonly links: Gauge
  readonly queuedBytes: Gauge

  constructor(metrics: Metrics) {
    this.#calls = metrics.counter('sectional_rpc_calls_total', 'Calls and streams begun on peers, by verb and outcome', ['verb', 'outcome'])
    this.#seconds = metrics.histogram('sectional_rpc_call_seconds', 'Time from a call to its answer, by verb', ['verb'], latencyBucketsSeconds)
    this.#served = metrics.counter('sectional_rpc_served_total', 'Calls and streams served for peers, by verb and outcome', ['verb', 'outcome'])
    this.#frames = metrics.counter('sectional_rpc_frames_total', 'Frames on peer links', ['direction'])
    this.#messages = metrics.counter('sectional_rpc_messages_total', 'Messages on peer links', ['direction'])
    this.#bytes = metrics.counter('sectional_rpc_bytes_total', 'Bytes of frames on peer links', ['direction'])
    this.#refused = metrics.counter('sectional_rpc_handshakes_refused_total', 'Handshakes that opened no link, by reason', ['reason'])
    this.#droppedRaft = metrics.counter('sectional_rpc_raft_dropped_total', 'Consensus messages not sent: no link or a full queue')
    this.links = metrics.gauge('sectional_rpc_links', 'Open, authenticated links')
    this.queuedBytes = metrics.gauge('sectional_rpc_queued_bytes', 'Outgoing bytes not yet handed to the system')
  }

  /** `seconds` of a stream: until its end. */
  called(verb: string, outcome: string, seconds: number): void {
    this.#calls.add(1, { verb, outcome })
    this.#seconds.observe(seconds, { verb })
  }

  served(verb: string, outcome: string): void { this.#served.add(1, { verb, outcome }) }

  sent(frames: number, messages: number, bytes: number): void {
    this.#frames.add(frames, { direction: 'out' })
    this.#messages.add(messages, { direction: 'out' })
    this.#bytes.add(bytes, { direction: 'out' })
  }

  received(messages: number, bytes: number): void {
    this.#frames.add(1, { direction: 'in' })
    this.#messages.add(messages, { direction: 'in' })
    this.#bytes.add(bytes, { direction: 'in' })
  }

  refused(reason: string): void { this.#refused.add(1, { reason }) }

  raftDropped(): void { this.#droppedRaft.add(1) }
}
