/**
 * Counts requests. The counts are kept in plain maps and copied to the metrics when these are collected, because
 * updating labelled counters costs more than the rest of a cheap route.
 */
import type { Histogram, Metrics } from '@sectional/runtime'
import type { Admission } from '../request/admission.ts'
import type { RequestContext } from '../request/request-context.ts'

interface Tally {
  readonly route: string
  readonly method: string
  readonly code: string
  readonly latencyLabels: Readonly<Record<string, string>>
  count: number
}

const latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
/** The status codes of this server. Functions of design documents may choose others, which are counted together. */
const knownCodes = new Set([
  200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 408, 409, 410, 412, 413, 414, 415, 416, 417,
  429, 499, 500, 501, 503, 507,
])
const otherCode = 0
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'COPY', 'OPTIONS'])

export class RequestMetrics {
  readonly #tallies = new Map<string, Map<number, Tally>>()
  readonly #latency: Histogram

  constructor(metrics: Metrics, admission: Admission) {
    this.#latency = metrics.histogram(
      'sectional_http_request_seconds', 'Time from the request to the end of its answer', ['route'], latencyBuckets,
    )
    const requests = metrics.counter('sectional_http_requests_total', 'Requests by route, method and status code', [
      'route', 'method', 'code',
    ])
    const inFlight = metrics.gauge('sectional_http_requests_in_flight', 'Requests being worked on')
    const feeds = metrics.gauge('sectional_http_changes_feeds', 'Changes feeds that clients wait on')
    const bodyBytes = metrics.gauge('sectional_http_buffered_body_bytes', 'Bytes of request bodies held in memory')
    metrics.onCollect(() => {
      for (const codes of this.#tallies.values()) {
        for (const tally of codes.values()) {
          if (tally.count > 0) requests.add(tally.count, { route: tally.route, method: tally.method, code: tally.code })
          tally.count = 0
        }
      }
      inFlight.set(admission.requests)
      feeds.set(admission.feeds)
      bodyBytes.set(admission.bufferedBytes)
    })
  }

  /** @param seconds time since the request began */
  observe(request: RequestContext, seconds: number): void {
    const tally = this.#tally(request)
    tally.count++
    this.#latency.observe(seconds, tally.latencyLabels)
  }

  #tally(request: RequestContext): Tally {
    const method = request.head ? 'HEAD' : knownMethods.has(request.method) ? request.method : 'OTHER'
    const key = `${method} ${request.route}`
    let codes = this.#tallies.get(key)
    if (codes === undefined) this.#tallies.set(key, codes = new Map())
    const code = knownCodes.has(request.status) ? request.status : otherCode
    let tally = codes.get(code)
    if (tally === undefined) {
      tally = {
        route: request.route, method, code: code === otherCode ? 'other' : String(code),
        latencyLabels: { route: request.route }, count: 0,
      }
      codes.set(code, tally)
    }
    return tally
  }
}
