/**
 * Compares two built checkouts: `node bench/against.ts DIR [--nodes 1] [--seconds 1] [--restarts 5] [--rounds 4]
 * [--only TEXT,TEXT]`. A cluster of `--nodes` nodes of each checkout runs during the whole comparison. The clusters are
 * measured in turns, and the order changes, so that other work of the machine affects both. Everything is measured
 * after each of `restarts` restarts of the processes, `rounds` times each: the same work can cost one process 10 % more
 * or less CPU than the next, depending on how its garbage collector started.
 * Prints a table: rates, the median of the ratios of rates (this checkout to the other; above 1 is faster), the CPU
 * time of all nodes for each item, and the median of the ratios of CPU time (below 1 is cheaper). CPU time is more
 * reliable than rates on a machine that does other work too.
 */
import { parseArgs } from 'node:util'
import { measure, type Measured } from './comparison.ts'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { runLoad, runScript } from './measured-process.ts'
import type { LoadJob } from './load.ts'
import type { TransferJob, TransferResult } from './transfers.ts'

const { values: flags, positionals: [other] } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '1' }, restarts: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '4' }, folder: { type: 'string' }, only: { type: 'string', default: '' },
    nodes: { type: 'string', default: '1' },
  },
})
if (other === undefined) throw new Error('name the folder of the other checkout: node bench/against.ts DIR')

const seconds = Number(flags.seconds)
const database = 'bench'
const documents = 50_000
const batch = 1000
const bodyBytes = 1000
const readyMsMax = 30_000
let jobs = 0

type Work = (cluster: MeasuredCluster) => Promise<Measured>

function requests(kind: LoadJob['kind'], connections: number): Work {
  return ({ nodes }) => measure(nodes, async () => {
    const ports = nodes.map(({ port }) => port)
    const result = await runLoad({
      kind, ports, connections, seconds, database, documents, tag: `job${jobs++}`, ids: 'random', batch, bodyBytes,
      auth,
    })
    return { count: result.requests * (kind === 'bulk' ? batch : 1), seconds: result.seconds }
  })
}

function rows(path: string): Work {
  return ({ nodes }) => measure(nodes, async () => {
    const job: TransferJob = {
      method: 'GET', path: `/${database}/${path}`, port: nodes[0]!.port, connections: 4, seconds, auth, tag: '',
    }
    const result = await runScript('transfers.ts', [JSON.stringify(job)]) as TransferResult
    return { count: result.requests * documents, seconds: result.seconds }
  })
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

const nodes = Number(flags.nodes)
const clusters = [
  await MeasuredCluster.start(nodes, flags.folder), await MeasuredCluster.start(nodes, flags.folder, other),
] as const
/** Lists are measured first, while both databases are unchanged. */
const works: Readonly<Record<string, Work>> = {
  '`_all_docs`, rows': rows('_all_docs'),
  '`_all_docs` with documents, rows': rows('_all_docs?include_docs=true'),
  '`_changes`, rows': rows('_changes'),
  '`_changes` with documents, rows': rows('_changes?include_docs=true'),
  'GET of random documents': requests('get', 64),
  'durable PUT of new documents': requests('put', 64),
  '`_bulk_docs` of 1000, random ids': requests('bulk', 4),
}
try {
  for (const cluster of clusters) await cluster.fill(database, documents, batch, bodyBytes)
  console.log('| What | This | Other | Ratio | CPU each | CPU ratio |\n|---|---|---|---|---|---|')
  for (const [what, work] of Object.entries(works).filter(([name]) =>
    flags.only.split(',').some(part => name.includes(part)))) {
    const measured: [Measured[], Measured[]] = [[], []]
    for (let life = 0; life < Number(flags.restarts); life++) {
      // A restart also writes LevelDB's memory table to files. Otherwise the table might contain all documents in one
      // checkout and none in the other.
      for (const cluster of clusters) await cluster.restart(readyMsMax)
      for (let round = -1; round < Number(flags.rounds); round++) {
        for (const at of (life + round) % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
          const result = await work(clusters[at])
          if (round >= 0) measured[at].push(result)
        }
      }
    }
    const [own, others] = measured
    const ratio = median(own.map(({ perSecond }, round) => perSecond / others[round]!.perSecond))
    const cpuRatio = median(own.map(({ cpuUs }, round) => cpuUs / others[round]!.cpuUs))
    const [ownCpu, otherCpu] = measured.map(results => median(results.map(({ cpuUs }) => cpuUs)).toFixed(1))
    const [ownRate, otherRate] = measured.map(results => Math.round(median(results.map(({ perSecond }) => perSecond))))
    const rates = `${ownRate}/s | ${otherRate}/s | **${ratio.toFixed(2)}**`
    console.log(`| ${what} | ${rates} | ${ownCpu} / ${otherCpu} us | ${cpuRatio.toFixed(2)} |`)
  }
} finally {
  await Promise.all(clusters.map(cluster => cluster.stop()))
}
