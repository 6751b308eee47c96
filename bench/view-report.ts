/** All measurements of views, as the lines of a report: first builds, the latency of reads beside them, and queries. */
import { Bench, table, type Row } from './comparison.ts'
import { MeasuredCluster } from './measured-cluster.ts'
import { fill, measureBuilds, measureLargeBuild, measureLatency } from './view-builds.ts'
import { heavyMap, reading, readingsMap, simpleMap } from './view-documents.ts'
import { measureQueries } from './view-queries.ts'

export interface ViewMeasurement {
  /** Number of documents of which views are built for the first time. */
  readonly documents: number
  /** Numbers of rows of the views that are queried. */
  readonly sizes: readonly number[]
  /** Length of each measurement, and how many of them there are. */
  readonly seconds: number
  readonly rounds: number
  readonly folder?: string | undefined
  /** First of the two ports of the node; by default free ports are used. */
  readonly port?: number | undefined
  /** Number of shards of each database; by default that of the node (8). */
  readonly shards?: number | undefined
  /** Measures only the parts (`builds`, `queries`) and the kinds of queries whose names contain these texts. */
  readonly part?: string | undefined
  readonly query?: string | undefined
}

/** What `scripts/bench` measures. Takes about eight minutes. */
export const fullMeasurement: ViewMeasurement =
  { documents: 200_000, sizes: [10_000, 100_000, 1_000_000], seconds: 2, rounds: 3 }
/** Takes about two minutes. */
export const quickMeasurement: ViewMeasurement = { documents: 20_000, sizes: [10_000, 100_000], seconds: 1, rounds: 1 }

const view = { map: readingsMap, reduce: '_count' }

/** Prints each result as soon as it is there, and returns the tables. */
export async function measureViews(measurement: ViewMeasurement): Promise<string[]> {
  const parts = { builds: measureBuildsAndLatency, queries: measureSizes }
  const lines: string[] = []
  for (const [name, measurePart] of Object.entries(parts)) {
    if (!name.includes(measurement.part ?? '')) continue
    lines.push(...await onOneNode(measurement, cluster => measurePart(cluster, measurement)), '')
  }
  return lines.slice(0, -1)
}

async function onOneNode<Result>(
  { folder, port, shards }: ViewMeasurement, work: (cluster: MeasuredCluster) => Promise<Result>,
): Promise<Result> {
  const cluster = await MeasuredCluster.start(1, folder, undefined, port)
  try {
    if (shards !== undefined) await cluster.send('PUT', '/_node/_local/_config/cluster/q', String(shards), 200)
    return await work(cluster)
  } finally {
    await cluster.stop()
  }
}

async function measureBuildsAndLatency(
  cluster: MeasuredCluster, { documents, seconds }: ViewMeasurement,
): Promise<string[]> {
  const lines = await measureBuilds(cluster, documents, { 'simple map': simpleMap, 'heavy map': heavyMap })
  return [...lines, '', `- ${await measureLatency(cluster, documents, 2 * seconds, heavyMap)}`]
}

async function measureSizes(
  cluster: MeasuredCluster, { sizes, seconds, rounds, query }: ViewMeasurement,
): Promise<string[]> {
  const bench = new Bench(seconds, rounds, query)
  const rows: Row[] = []
  const lines: string[] = []
  for (const size of sizes) {
    const database = `readings-${size}`
    await fill(cluster, database, size, reading)
    lines.push(`- ${await measureLargeBuild(cluster, database, size, view)}`)
    rows.push(...await measureQueries(bench, cluster, database, size))
  }
  return [...table(rows), '', ...lines]
}
