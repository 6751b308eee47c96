/** Converts the buckets of a Prometheus histogram into the summary that CouchDB's tools read. */
import type { MetricSample } from '@sectional/runtime'

const percentiles = [50, 75, 90, 95, 99, 999] as const

interface Bucket { readonly upper: number; readonly count: number }

/**
 * Summarizes a histogram: count, mean, and percentiles by linear interpolation within a bucket (like
 * `histogram_quantile` of Prometheus). Values are multiplied by `scale`.
 */
export function summarize(
  samples: readonly MetricSample[], name: string, scale: number,
): Readonly<Record<string, unknown>> {
  const buckets = cumulativeBuckets(samples, name)
  const total = (suffix: string) =>
    samples.filter(sample => sample.name === `${name}_${suffix}`).reduce((sum, sample) => sum + sample.value, 0)
  const n = total('count')
  const quantile = (share: number) => quantileOf(buckets, n, share) * scale
  return {
    n,
    arithmetic_mean: n === 0 ? 0 : total('sum') / n * scale,
    median: quantile(0.5),
    percentile: percentiles.map(percent => [percent, quantile(percent / (percent > 100 ? 1000 : 100))]),
    histogram: buckets.filter(bucket => Number.isFinite(bucket.upper))
      .map((bucket, index) => [bucket.upper * scale, bucket.count - (buckets[index - 1]?.count ?? 0)]),
  }
}

/** Returns the buckets in ascending order, summed over the other labels. */
function cumulativeBuckets(samples: readonly MetricSample[], name: string): Bucket[] {
  const counts = new Map<number, number>()
  for (const sample of samples) {
    if (sample.name !== `${name}_bucket` || sample.labels.le === undefined) continue
    const upper = sample.labels.le === '+Inf' ? Infinity : Number(sample.labels.le)
    counts.set(upper, (counts.get(upper) ?? 0) + sample.value)
  }
  return [...counts].map(([upper, count]) => ({ upper, count })).sort((a, b) => a.upper - b.upper)
}

function quantileOf(buckets: readonly Bucket[], n: number, share: number): number {
  const rank = n * share
  let lower = 0
  let below = 0
  for (const { upper, count } of buckets) {
    if (count >= rank && count > below) {
      return Number.isFinite(upper) ? lower + (upper - lower) * (rank - below) / (count - below) : lower
    }
    if (Number.isFinite(upper)) lower = upper
    below = count
  }
  return lower
}
