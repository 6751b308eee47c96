/** Measures first builds of views on one node, and the latency of document reads while a build runs. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Measured } from './comparison.ts'
import { auth, type MeasuredCluster } from './measured-cluster.ts'
import {
  childrenOf, familyCpuUs, peakMiB, resetPeak, residentMiB, runLoad, runScript, untilIdle,
} from './measured-process.ts'
import { order } from './view-documents.ts'

const bulkDocuments = 1000
/** The folder of the store of indexes in the data of a node. */
const indexFolder = 'stores/indexes'

/** What a build or a bare program took; CPU time is that of all threads and child processes. */
export interface MeasuredBuild { readonly documents: number; readonly seconds: number; readonly cpuUs: number }

/** Creates a database and stores documents in requests of 1,000. @param document returns JSON text */
export async function fill(
  cluster: MeasuredCluster, database: string, documents: number, document: (number: number) => string,
): Promise<void> {
  await cluster.send('PUT', `/${database}`, null, 201)
  for (let from = 0; from < documents; from += bulkDocuments) {
    const length = Math.min(bulkDocuments, documents - from)
    const docs = Array.from({ length }, (_, index) => document(from + index))
    await cluster.sendText('POST', `/${database}/_bulk_docs`, `{"docs":[${docs.join(',')}]}`, 201)
  }
}

export interface View { readonly map: string; readonly reduce?: string }

/** Saves a design document with the view `rows`, and waits for its index by means of a query without rows. */
export async function build(
  cluster: MeasuredCluster, database: string, design: string, view: View,
): Promise<void> {
  await cluster.send('PUT', `/${database}/_design/${design}`, { views: { rows: view } }, 201)
  await cluster.send('GET', `/${database}/_design/${design}/_view/rows?limit=0&reduce=false`, null, 200)
}

/** Measures the first build of a view, from the moment when the node has ended what it did before. */
export async function measureBuild(
  cluster: MeasuredCluster, database: string, documents: number, design: string, view: View,
): Promise<MeasuredBuild> {
  const { processId } = cluster.nodes[0]!
  await untilIdle(processId)
  const before = familyCpuUs(processId)
  const startedAt = performance.now()
  await build(cluster, database, design, view)
  const seconds = (performance.now() - startedAt) / 1000
  return { documents, seconds, cpuUs: (familyCpuUs(processId) - before) / documents }
}

/** Measures V8 alone with the same documents and function, in a process of its own, before and after `measured`. */
async function measureBeside(
  map: string, documents: number, measured: () => Promise<MeasuredBuild>,
): Promise<{ readonly built: MeasuredBuild; readonly ceiling: MeasuredBuild }> {
  const before = await measureCeiling(map, documents)
  const built = await measured()
  const after = await measureCeiling(map, documents)
  const seconds = (before.seconds + after.seconds) / 2
  return { built, ceiling: { documents, seconds, cpuUs: (before.cpuUs + after.cpuUs) / 2 } }
}

async function measureCeiling(map: string, documents: number): Promise<MeasuredBuild> {
  const { perSecond, cpuUs } = await runScript('view-ceiling.ts', [map, String(documents)]) as Measured
  return { documents, seconds: documents / perSecond, cpuUs }
}

/**
 * Returns rows of a table. Ratios are those of documents for each second of CPU, and for each second. V8 alone is
 * measured before and after each build, because the speed of a virtual machine changes within a minute. Before all, a
 * view without rows is built. V8 alone also calls its function once with all documents before it is measured. LevelDB
 * compacts files that many reads have searched, so the first reading of documents that have just been written pays for
 * compactions which the writes have left. The time of that build is printed, too.
 */
export async function measureBuilds(
  cluster: MeasuredCluster, documents: number, maps: Readonly<Record<string, string>>,
): Promise<string[]> {
  const database = 'orders'
  await fill(cluster, database, documents, order)
  const first = await measureBuild(cluster, database, documents, 'no-rows', { map: 'function (doc) {}' })
  console.log(`view without rows, behind the writes of the documents: ${first.cpuUs.toFixed(1)} us CPU for a document`)
  const lines: string[] = []
  for (const [name, map] of Object.entries(maps)) {
    const { built, ceiling } = await measureBeside(map, documents, () => (
      measureBuild(cluster, database, documents, name.replaceAll(/\W+/g, '-'), { map })))
    lines.push(buildLine(name, built, ceiling))
    console.log(lines.at(-1))
  }
  return [
    '| First build | Sectional: documents per CPU second | V8 alone | Ratio | Target | CPU each | Elapsed |',
    '|---|---|---|---|---|---|---|', ...lines,
  ]
}

function buildLine(name: string, built: MeasuredBuild, ceiling: MeasuredBuild): string {
  const perCpuSecond = ({ cpuUs }: MeasuredBuild): number => Math.round(1e6 / cpuUs)
  const perSecond = ({ documents, seconds }: MeasuredBuild): string => `${Math.round(documents / seconds)}/s`
  const ratio = (ceiling.cpuUs / built.cpuUs).toFixed(2)
  return `| ${name} | ${perCpuSecond(built)} | ${perCpuSecond(ceiling)} | **${ratio}** | 0.25 or more `
    + `| ${built.cpuUs.toFixed(1)} / ${ceiling.cpuUs.toFixed(1)} us | ${perSecond(built)} / ${perSecond(ceiling)} |`
}

/** Measures a build, its largest resident memory and the size of its index. Returns a line of a report. */
export async function measureLargeBuild(
  cluster: MeasuredCluster, database: string, documents: number, view: View,
): Promise<string> {
  const { processId } = cluster.nodes[0]!
  await untilIdle(processId)
  const before = residentMiB(processId)
  resetPeak(processId)
  const bytesBefore = cluster.dataBytes(0, indexFolder)
  let children = 0
  const sampling = setInterval(() => {
    children = Math.max(children, childrenOf(processId).reduce((sum, child) => sum + residentMiB(child), 0))
  }, 200)
  try {
    const { seconds, cpuUs } = await measureBuild(cluster, database, documents, 'rows', view)
    const bytes = (cluster.dataBytes(0, indexFolder) - bytesBefore) / documents
    const line = `${documents} documents with one row each: ${Math.round(documents / seconds)} documents/s, `
      + `${cpuUs.toFixed(1)} us CPU for a document; largest resident memory ${peakMiB(processId).toFixed(0)} MiB `
      + `(${before.toFixed(0)} MiB before), ${children.toFixed(0)} MiB in child processes; `
      + `${bytes.toFixed(0)} bytes of a row on disk`
    console.log(line)
    return line
  } finally {
    clearInterval(sampling)
  }
}

/** Measures GETs of random documents on an idle node and while the index of a new view is built. */
export async function measureLatency(
  cluster: MeasuredCluster, documents: number, seconds: number, map: string,
): Promise<string> {
  const { port } = cluster.nodes[0]!
  const read = async (duration: number): Promise<number> => (await runLoad({
    kind: 'path', path: '/orders/order-{padded}', ports: [port], connections: 64, seconds: duration, database: 'orders',
    documents, batch: 0, bodyBytes: 0, auth, tag: '', ids: 'ascending',
  })).latencyMs.p99
  await read(1)
  const idle = await read(seconds)
  let reading = true
  // One build follows the other, with functions that differ, so that a build runs all the time.
  const building = (async () => {
    for (let number = 0; reading; number++) {
      await build(cluster, 'orders', `latency-${number}`, { map: `${map} // ${number}` })
    }
  })()
  await pause(1000)
  const busy = await read(seconds)
  reading = false
  await building
  const line = `GET of random documents at 64 connections, p99: ${busy} ms during a build, ${idle} ms without: `
    + `**${(busy / idle).toFixed(1)}** (target: at most 2)`
  console.log(line)
  return line
}
