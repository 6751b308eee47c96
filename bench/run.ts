/**
 * The benchmark: `scripts/bench` (or `npm run bench` after a build). It measures Sectional and the bare parts that it
 * consists of in turns within one run, so that the ratios are comparable between machines, and writes
 * docs/performance.md. It takes about twenty minutes; the machine should be idle otherwise.
 */
import { readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { MeasuredCluster, auth } from './measured-cluster.ts'
import {
  openFiles, residentMiB, runLoad, runScript, startBareProgram, type MeasuredServer,
} from './measured-process.ts'
import { Bench, measure, table, type Measured, type Row } from './comparison.ts'
import type { IdOrder } from './documents.ts'
import { measureReads } from './reads.ts'
import { fullMeasurement, measureViews } from './view-report.ts'
import type { LoadJob } from './load.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' }, rounds: { type: 'string', default: '5' }, folder: { type: 'string' },
    only: { type: 'string', default: '' }, 'no-file': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log('scripts/bench [--seconds 4] of each measurement, [--rounds 5] of which the median counts, '
    + '[--folder DIR] for the data, [--no-file]: print only, '
    + '[--only TEXT]: the rows of one node whose name has the text, print only')
  process.exit(0)
}

const seconds = Number(flags.seconds)
const rounds = Number(flags.rounds)
const connections = 64
const bodyBytes = 1000
const documents = 50_000
const batch = 1000
const bulkConnections = 4
const database = 'bench'
const idleSeconds = 5
const idleDatabases = 1000
const bench = new Bench(seconds, rounds, flags.only)

let jobs = 0

function rate(
  servers: readonly MeasuredServer[], kind: LoadJob['kind'], duration: number, ids: IdOrder = 'random',
): Promise<Measured> {
  return measure(servers, async () => {
    const result = await runLoad({
      kind, ports: servers.map(server => server.port), database, documents, batch, bodyBytes, auth, seconds: duration,
      tag: `job${jobs++}`, ids,
      connections: kind === 'bulk' ? bulkConnections : connections,
    })
    return { count: result.requests * (kind === 'bulk' ? batch : 1), seconds: result.seconds }
  })
}

async function bareBulkRate(duration: number, ids: IdOrder): Promise<Measured> {
  const folder = mkdtempSync(join(flags.folder ?? tmpdir(), 'sectional-bench-level-'))
  const measured =
    await runScript('bare-level.ts', [folder, String(batch), String(duration), String(bodyBytes), ids]) as Measured
  rmSync(folder, { recursive: true })
  return measured
}

function compareBulk(label: string, cluster: MeasuredCluster, ids: IdOrder, target: string): Promise<Row[]> {
  return bench.compare({
    what: `${label}: \`_bulk_docs\` of ${batch}, documents with ${ids} ids`, target,
    sectional: duration => rate(cluster.nodes, 'bulk', duration, ids), bare: duration => bareBulkRate(duration, ids),
  })
}

async function measureNodes(
  count: number, targets: readonly string[],
): Promise<{ readonly rows: Row[]; readonly idleMiB: number }> {
  const label = count === 1 ? 'one node' : `${count} nodes`
  const cluster = await MeasuredCluster.start(count, flags.folder)
  const bare = await startBareProgram('bare-http-server.ts', [String(bodyBytes)])
  const compareWithServer = (what: string, kind: LoadJob['kind'], target: string): Promise<Row[]> => bench.compare({
    what, target, sectional: duration => rate(cluster.nodes, kind, duration),
    bare: duration => rate([bare], kind, duration),
  })
  try {
    await pause(idleSeconds * 1000)
    const idleMiB = Math.max(...cluster.nodes.map(node => residentMiB(node.processId)))
    await cluster.fill(database, documents, batch, bodyBytes)
    return {
      idleMiB,
      rows: [
        ...await compareWithServer(`${label}: GET of random documents`, 'get', targets[0]!),
        ...await compareWithServer(`${label}: durable PUT of new documents`, 'put', targets[1]!),
        ...await compareBulk(label, cluster, 'random', targets[2]!),
        ...await compareBulk(label, cluster, 'ascending', 'reported'),
      ],
    }
  } finally {
    await bare.stop()
    await cluster.stop()
  }
}

/** Measures an empty cluster of three nodes with many databases (q=2, n=3). */
async function measureManyDatabases(): Promise<string[]> {
  const cluster = await MeasuredCluster.start(3, flags.folder)
  try {
    const startedAt = performance.now()
    for (let from = 0; from < idleDatabases; from += 20) {
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => cluster.send('PUT', `/empty-${from + index}?q=2`, null, 201)),
      )
    }
    const createSeconds = (performance.now() - startedAt) / 1000
    await pause(idleSeconds * 1000)
    const files = Math.max(...cluster.nodes.map(node => openFiles(node.processId)))
    const memory = Math.max(...cluster.nodes.map(node => residentMiB(node.processId)))
    const line = `${idleDatabases} empty databases (q=2, n=3) on three nodes: ${files} open files and `
      + `${memory.toFixed(0)} MiB resident in the largest node; created in ${createSeconds.toFixed(1)} s`
    console.log(line)
    return [line]
  } finally {
    await cluster.stop()
  }
}

function report(rows: readonly Row[], lines: readonly string[], views: readonly string[]): string {
  const [cpu] = cpus()
  return [
    `Measured by \`scripts/bench\` on ${cpus().length} cores (${cpu?.model.trim()}), Node.js ${process.versions.node}:`,
    `${connections} connections (${bulkConnections} for \`_bulk_docs\`), documents of ${bodyBytes} bytes,`,
    `${rounds} rounds of ${seconds} s in turns with the bare program. The table gives medians. The`,
    'load generator shares the cores. The bare programs are:',
    '',
    '- GET and PUT: a `node:http` server that reads the request and sends a constant answer',
    `- \`_bulk_docs\`: classic-level, which writes the same documents under the same ids in synced batches of ${batch}`,
    '- lists, feeds and `_bulk_get` (50,000 documents, 4 connections): classic-level, which scans the same rows into a',
    '  `node:http` response',
    '- attachments: `node:http`, which pipes to a file with fsync, and from a file',
    '',
    '"CPU each" is the CPU time for one row, document, request or MB. "MiB resident" is the largest resident memory.',
    'Both are given for Sectional\'s processes / the bare program.',
    '',
    ...table(rows),
    '',
    ...lines.map(line => `- ${line}`),
    '',
    '### Views of one node, with databases of 8 shards',
    '',
    ...views,
    '',
  ].join('\n')
}

const one = await measureNodes(1, ['0.45 or more', '0.25 or more', '0.4 or more'])
const reads = await measureReads(bench, flags.folder)
if (flags.only !== '') process.exit(0)
const three = await measureNodes(3, ['reported', 'reported', 'reported'])
const lines = [
  `Idle node: ${one.idleMiB.toFixed(0)} MiB resident (a cluster of one), ${three.idleMiB.toFixed(0)} MiB (the largest `
    + 'of three); the target is under 120.',
  ...await measureManyDatabases(),
]
const views = await measureViews({ ...fullMeasurement, folder: flags.folder })
const text = report([...one.rows, ...reads, ...three.rows], lines, views)
console.log(`\n${text}`)
if (!flags['no-file']) {
  const page = new URL('../docs/performance.md', import.meta.url)
  const marker = '<!-- written by scripts/bench below this line -->\n'
  writeFileSync(page, `${readFileSync(page, 'utf8').split(marker)[0]}${marker}\n${text}`)
}
