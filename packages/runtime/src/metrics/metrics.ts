/** Counters, gauges and histograms of one node (never process-wide: N nodes live in one process in tests). */
export interface Metrics {
  /** Creates or returns the metric of that name; `labels` are the label names. Names follow Prometheus. */
  counter(name: string, help: string, labels?: readonly string[]): Counter
  gauge(name: string, help: string, labels?: readonly string[]): Gauge
  /** Observations in seconds unless the name says otherwise. */
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Histogram
  /** Called before each rendering, to set gauges that are read rather than kept. */
  onCollect(collect: () => void | Promise<void>): void
  /** Prometheus text format. */
  render(): Promise<string>
  /** Every sample as name, labels and value (histograms as _sum, _count, _bucket). */
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
