import type { Clock } from '../clock/clock.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { GroupObserver } from './group-commit-store.ts'

const groupSizeBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]

/** Counts and measures the durable batches of every store of one node. */
export function storageMetrics(metrics: Metrics, clock: Clock): GroupObserver {
  const seconds = metrics.histogram(
    'sectional_storage_commit_seconds', 'Time of one durable batch, fsync included', ['store'],
  )
  const calls = metrics.histogram(
    'sectional_storage_commit_writes', 'Writes that one durable batch took together', ['store'], groupSizeBuckets,
  )
  const operations = metrics.counter('sectional_storage_operations_total', 'Keys put and deleted durably', ['store'])
  const bytes = metrics.counter('sectional_storage_bytes_total', 'Bytes of keys and values written durably', ['store'])
  const failures = metrics.counter('sectional_storage_failures_total', 'Batches that failed', ['store'])
  return {
    begin: store => {
      const startedAt = clock.monotonic()
      const labels = { store }
      return group => {
        if (group.failed) return failures.add(1, labels)
        seconds.observe((clock.monotonic() - startedAt) / 1000, labels)
        calls.observe(group.writes, labels)
        operations.add(group.operations, labels)
        bytes.add(group.bytes, labels)
      }
    },
  }
}
