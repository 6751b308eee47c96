import { createRequire } from 'node:module'
import type * as Prometheus from 'prom-client'
import type { Counter, Gauge, Histogram, Metrics, MetricSample } from './metrics.ts'

// Load the parts of the package one by one. Its index also loads node:cluster and OpenTelemetry, which would cost 17 MB
// of resident memory.
const load = createRequire(import.meta.url)
const PrometheusRegistry = load('prom-client/lib/registry') as typeof Prometheus.Registry
const PrometheusCounter = load('prom-client/lib/counter') as typeof Prometheus.Counter
const PrometheusGauge = load('prom-client/lib/gauge') as typeof Prometheus.Gauge
const PrometheusHistogram = load('prom-client/lib/histogram') as typeof Prometheus.Histogram

type Labels = Readonly<Record<string, string>>

/** Seconds. The buckets cover quick reads as well as requests that nearly time out. */
const defaultBucketsSeconds: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

/** Metrics in a prom-client registry of this instance. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new PrometheusRegistry()
  readonly #collectors: (() => void | Promise<void>)[] = []

  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    const counter = this.#metric(
      name, PrometheusCounter<string>,
      () => new PrometheusCounter({ name, help, labelNames: labels, registers: [this.#registry] }),
    )
    return {
      add: (value = 1, values?: Labels) => {
        if (values === undefined) counter.inc(value)
        else counter.inc(values, value)
      },
    }
  }

  gauge(name: string, help: string, labels: readonly string[] = []): Gauge {
    const gauge = this.#metric(
      name, PrometheusGauge<string>,
      () => new PrometheusGauge({ name, help, labelNames: labels, registers: [this.#registry] }),
    )
    return {
      set: (value, values?: Labels) => {
        if (values === undefined) gauge.set(value)
        else gauge.set(values, value)
      },
      add: (value, values?: Labels) => {
        if (values === undefined) gauge.inc(value)
        else gauge.inc(values, value)
      },
    }
  }

  histogram(
    name: string, help: string, labels: readonly string[] = [], buckets: readonly number[] = defaultBucketsSeconds,
  ): Histogram {
    const histogram = this.#metric(name, PrometheusHistogram<string>, () =>
      new PrometheusHistogram({ name, help, labelNames: labels, buckets: [...buckets], registers: [this.#registry] }))
    return {
      observe: (value, values?: Labels) => {
        if (values === undefined) histogram.observe(value)
        else histogram.observe(values, value)
      },
    }
  }

  onCollect(collect: () => void | Promise<void>): void {
    this.#collectors.push(collect)
  }

  async render(): Promise<string> {
    await this.#collect()
    return await this.#registry.metrics()
  }

  async samples(): Promise<readonly MetricSample[]> {
    await this.#collect()
    const samples: MetricSample[] = []
    for (const metric of await this.#registry.getMetricsAsJSON()) {
      for (const { value, labels, metricName } of metric.values as Prometheus.MetricValueWithName<string>[]) {
        samples.push({ name: metricName ?? metric.name, labels: namedLabels(labels), value })
      }
    }
    return samples
  }

  async #collect(): Promise<void> {
    for (const collect of this.#collectors) await collect()
  }

  #metric<M extends Prometheus.Metric<string>>(
    name: string, kind: abstract new (...options: never[]) => M, create: () => M,
  ): M {
    const known = this.#registry.getSingleMetric(name)
    if (known === undefined) return create()
    if (known instanceof kind) return known
    throw new TypeError(`the metric ${name} exists already and is of another kind`)
  }
}

function namedLabels(labels: Partial<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))
}
