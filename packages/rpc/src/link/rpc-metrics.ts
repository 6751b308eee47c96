import type { Counter, Gauge, Histogram, Metrics } from '@sectional/runtime'
import type { OutboxMeter } from '../frame/outbox.ts'

const latencyBucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Counts by verb and outcome. The counts are added to the metrics when these are read, since a label costs 1 us. */
class OutcomeTally {
  readonly #counter: Counter
  readonly #byVerb = new Map<string, Map<string, number>>()

  constructor(counter: Counter) { this.#counter = counter }

  add(verb: string, outcome: string): void {
    let outcomes = this.#byVerb.get(verb)
    if (!outcomes) this.#byVerb.set(verb, outcomes = new Map())
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }

  flush(): void {
    for (const [verb, outcomes] of this.#byVerb) {
      for (const [outcome, count] of outcomes) this.#counter.add(count, { verb, outcome })
    }
    this.#byVerb.clear()
  }
}

/** The metrics of this package, for the whole node. */
export class RpcMetrics implements OutboxMeter {
  readonly #calls: OutcomeTally
  readonly #seconds: Histogram
  readonly #served: OutcomeTally
  readonly #frames: Counter
  readonly #messages: Counter
  readonly #bytes: Counter
  readonly #refused: Counter
  readonly #droppedRaft: Counter
  readonly links: Gauge
  readonly queuedBytes: Gauge

  constructor(metrics: Metrics) {
    const outcomeLabels = ['verb', 'outcome']
    const calls = metrics.counter(
      'sectional_rpc_calls_total', 'Calls and streams begun on peers, by verb and outcome', outcomeLabels,
    )
    const served = metrics.counter(
      'sectional_rpc_served_total', 'Calls and streams served for peers, by verb and outcome', outcomeLabels,
    )
    this.#calls = new OutcomeTally(calls)
    this.#served = new OutcomeTally(served)
    const help = 'Time from a call to its answer, by verb'
    this.#seconds = metrics.histogram('sectional_rpc_call_seconds', help, ['verb'], latencyBucketsSeconds)
    this.#frames = metrics.counter('sectional_rpc_frames_total', 'Frames on peer links', ['direction'])
    this.#messages = metrics.counter('sectional_rpc_messages_total', 'Messages on peer links', ['direction'])
    this.#bytes = metrics.counter('sectional_rpc_bytes_total', 'Bytes of frames on peer links', ['direction'])
    this.#refused = metrics.counter(
      'sectional_rpc_handshakes_refused_total', 'Handshakes that opened no link, by reason', ['reason'],
    )
    this.#droppedRaft = metrics.counter(
      'sectional_rpc_raft_dropped_total', 'Consensus messages not sent: no link or a full queue',
    )
    this.links = metrics.gauge('sectional_rpc_links', 'Open, authenticated links')
    metrics.onCollect(() => {
      this.#calls.flush()
      this.#served.flush()
    })
    this.queuedBytes = metrics.gauge('sectional_rpc_queued_bytes', 'Outgoing bytes not yet handed to the system')
  }

  /** Counts a call that has ended. @param seconds time until the answer, or until the end of a stream */
  called(verb: string, outcome: string, seconds: number): void {
    this.#calls.add(verb, outcome)
    this.#seconds.observe(seconds, { verb })
  }

  served(verb: string, outcome: string): void { this.#served.add(verb, outcome) }

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
