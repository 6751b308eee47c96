import type { Metrics } from '@sectional/runtime'
import type { SyncKind } from './sync-queue.ts'

/** The values of the gauges, read when metrics are collected. */
export interface AntiEntropyGauges {
  readonly jobs: () => number
  readonly declining: () => number
  readonly filling: () => number
  readonly refillLeft: () => number
  readonly lag: () => ReadonlyMap<string, number>
}

export class AntiEntropyMetrics {
  readonly #passes
  readonly #stored
  readonly #found

  constructor(metrics: Metrics, gauges: AntiEntropyGauges) {
    this.#passes = metrics.counter(
      'sectional_anti_entropy_passes_total', 'Passes between two replicas by kind and result.', ['kind', 'result'],
    )
    this.#stored = metrics.counter(
      'sectional_anti_entropy_stored_total', 'Revisions and local documents that a pass found missing and stored.',
      ['kind'],
    )
    this.#found = metrics.counter(
      'sectional_digest_documents_found_total',
      'Documents that differed between replicas although checkpoints said otherwise.',
    )
    const jobs = metrics.gauge('sectional_anti_entropy_jobs', 'Passes that wait or run.')
    const declining = metrics.gauge(
      'sectional_replicas_catching_up', 'Replicas of this node that decline to decide edits until they have caught up.',
    )
    const filling = metrics.gauge(
      'sectional_replicas_filling', 'Replicas of this node that are being filled and count towards no quorum yet.',
    )
    const refillLeft = metrics.gauge(
      'sectional_refill_changes_left',
      'Changes of peers that the running passes still have to process to fill replicas of this node.',
    )
    const lag = metrics.gauge(
      'sectional_replication_lag_seconds', 'Age of the oldest change of this node that the peer has not confirmed.',
      ['peer'],
    )
    metrics.onCollect(() => {
      jobs.set(gauges.jobs())
      declining.set(gauges.declining())
      filling.set(gauges.filling())
      refillLeft.set(gauges.refillLeft())
      for (const [peer, ms] of gauges.lag()) lag.set(ms / 1000, { peer })
    })
  }

  passed(kind: SyncKind, result: 'done' | 'failed' | 'skipped'): void {
    this.#passes.add(1, { kind, result })
  }

  stored(kind: SyncKind, count: number): void {
    if (count > 0) this.#stored.add(count, { kind })
  }

  found(documents: number): void {
    if (documents > 0) this.#found.add(documents)
  }
}
