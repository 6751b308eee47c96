/**
 * Counters, gauges and histograms of one node. They are never process-wide, because tests run several nodes in a
 * process.
 */
export interface Metrics {
  /**
   * Creates the metric, or returns the existing one of that name. `labels` are the label names. Names follow
   * Prometheus.
   */
  counter(name: string, help: string, labels?: readonly string[]): Counter
  gauge(name: string, help: string, labels?: readonly string[]): Gauge
  /** Observations are in seconds unless the name says otherwise. */
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Histogram
  /** Registers a callback that runs before each rendering, to set gauges whose values are read at that time. */
  onCollect(collect: () => void | Promise<void>): void
  /** Returns all metrics in the Prometheus text format. */
  render(): Promise<string>
  /** Returns every sample with its name, labels and value (histograms as _sum, _count and _bucket). */
  samples(): Promise<readonly MetricSample[]>
}

export interface Counter { add(value?: number, labels?: Readonly<Record<string, string>>): void }
export interface Gauge {
  set(value: number, labels?: Readonly<Record<string, string>>): void
  add(value: number, labels?: Readonly<Record<string, string>>): void
}
export interface Histogram { observe(value: number, labels?: Readonly<Record<string, string>>): void }
export interface MetricSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}
