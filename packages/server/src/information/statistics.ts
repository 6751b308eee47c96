/**
 * `/_node/{name}/_stats` (docs/reference/cluster-and-nodes.md#get-_nodenode_stats): CouchDB's names where a metric of
 * this node answers them, every metric below `sectional`.
 */
import type { JsonObject } from '@sectional/core'
import type { Statistic } from '@sectional/http'
import type { MetricSample } from '@sectional/runtime'
import { summarize } from './histogram-summary.ts'

type Tree = { [key: string]: Tree | Statistic }

const requests = 'sectional_http_requests_total'
const requestSeconds = 'sectional_http_request_seconds'

/** Counters that operators monitor are listed with zero before they first count. */
const listedMethods = ['COPY', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT']
const listedCodes = [
  200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413, 414, 415, 416, 417, 500, 501,
  503,
]

export interface NodeGauges {
  readonly openFiles: number | null
  /** The number of replicas of shards that this node holds. */
  readonly replicas: number
}

export function statisticsTree(samples: readonly MetricSample[], gauges: NodeGauges): JsonObject {
  const sum = (name: string, labels: Readonly<Record<string, string>> = {}) => samples
    .filter(sample =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((total, sample) => total + sample.value, 0)
  const bulkRequests = samples.filter(sample => sample.name === requests && sample.labels.route === 'bulk-docs')
    .reduce((total, sample) => total + sample.value, 0)
  return {
    couchdb: {
      request_time: {
        value: summarize(samples, requestSeconds, 1000), type: 'histogram', desc: 'length of a request in milliseconds',
      },
      open_databases: counter(gauges.replicas, 'replicas of shards held by this node'),
      ...(gauges.openFiles === null
        ? {}
        : { open_os_files: counter(gauges.openFiles, 'file descriptors this process has open') }),
      document_writes: counter(
        sum('sectional_shard_documents_written_total'), 'documents written to this node\'s replicas',
      ),
      httpd: {
        requests: counter(sum(requests), 'number of HTTP requests'),
        bulk_requests: counter(bulkRequests, 'number of bulk requests'),
      },
      httpd_request_methods: Object.fromEntries(
        listedMethods.map(method => [method, counter(sum(requests, { method }), `number of HTTP ${method} requests`)]),
      ),
      httpd_status_codes: Object.fromEntries(
        listedCodes.map(code =>
          [code, counter(sum(requests, { code: String(code) }), `number of HTTP ${code} responses`)]),
      ),
    },
    sectional: ownTree(samples),
  }
}

function counter(value: number, desc: string): Statistic {
  return { value, type: 'counter', desc }
}

/** Lists every sample by its name; samples with labels are nested below it by `label=value`. */
function ownTree(samples: readonly MetricSample[]): Tree {
  const tree: Tree = {}
  for (const { name, labels, value } of samples) {
    if (labels.le !== undefined) continue
    const path = [name.replace(/^sectional_/, ''), ...Object.entries(labels).map(([label, text]) => `${label}=${text}`)]
    let at = tree
    for (const step of path.slice(0, -1)) at = (at[step] ??= {}) as Tree
    at[path.at(-1)!] = {
      value, type: name.endsWith('_total') || name.endsWith('_count') || name.endsWith('_sum') ? 'counter' : 'gauge',
      desc: name,
    }
  }
  return tree
}
