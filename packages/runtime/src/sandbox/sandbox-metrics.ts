import type { Counter, Gauge, Metrics } from '../metrics/metrics.ts'

/** Creates the metrics of the child processes of a node. */
export function childMetrics(metrics: Metrics): { children: Gauge; waiting: Gauge; ended: Counter } {
  return {
    children: metrics.gauge('sectional_sandbox_children', 'Processes that run functions of design documents'),
    waiting: metrics.gauge('sectional_sandbox_waiting_calls', 'Calls of functions of design documents that wait'),
    ended: metrics.counter(
      'sectional_sandbox_children_ended_total', 'Processes that ended while they ran functions, by reason', ['reason'],
    ),
  }
}
