/**
 * The benchmark: `scripts/bench` (or `npm run bench` after a build). Measures Sectional and the bare parts that it
 * is made of in turns within one run, so that the ratios hold on any machine, and writes docs/performance.md.
 * Takes about three minutes; the machine should do nothing else.
 */
import { readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { MeasuredCluster, auth } from './measured-cluster.ts'
import { cpuUs, openFiles, residentMiB, runLoad, runScript, startBareServer, type MeasuredServer } from './measured-process.ts'
import { documentBody, type IdOrder } from './documents.ts'
import type { LoadJob } from './load.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' }, rounds: { type: 'string', default: '3' }, folder: { type: 'string' },
    only: { type: 'string', default: '' }, 'no-file': { type: 'boolean', default: false }, help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log('scripts/bench [--seconds 4] of each measurement, [--rounds 3] of which the median counts, [--folder DIR] for the data, [--no-file]: print only, [--only TEXT]: the rows of one node whose name has the text, print only')
  process.exit(0)
}

const seconds = Number(flags.seconds)
const rounds = Number(flags.rounds)
const warmUpSeconds = 1.5
const connections = 64
const bodyBytes = 1000
const documents = 50_000
const batch = 1000
const bulkConnections = 4
const database = 'bench'
const idleSeconds = 5
const idleDatabases = 1000

interface Row { readonly what: string; readonly sectional: string; readonly bare: string; readonly ratio: string; readonly target: string; readonly cpu: string }

/** One measurement: how many a second, and what each cost the measured processes. */
interface Measured { readonly perSecond: number; readonly cpuUs: number }

let jobs = 0

async function rate(servers: readonly MeasuredServer[], kind: LoadJob['kind'], duration: number, ids: IdOrder = 'random'): Promise<Measured> {
  const ports = servers.map(server => server.port)
  const cpuBefore = cpuOf(servers)
  const result = await runLoad({
    kind, ports, database, documents, batch, bodyBytes, auth, seconds: duration, tag: `job${jobs++}`, ids,
    connections: kind === 'bulk' ? bulkConnections : connections,
  })
  const each = result.requests * (kind === 'bulk' ? batch : 1)
  return { perSecond: each / result.seconds, cpuUs: (cpuOf(servers) - cpuBefore) / each }
}

function cpuOf(servers: readonly MeasuredServer[]): number {
  return servers.reduce((total, server) => total + cpuUs(server.processId), 0)
}

async function bareBulkRate(duration: number, ids: IdOrder): Promise<Measured> {
  const folder = mkdtempSync(join(flags.folder ?? tmpdir(), 'sectional-bench-level-'))
  const measured = await runScript('bare-level.ts', [folder, String(batch), String(duration), String(bodyBytes), ids]) as Measured
  rmSync(folder, { recursive: true })
  return measured
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

/** Measures the two in turns; the median of the rounds' ratios counts. No row when `--only` leaves it out. */
async function compare(what: string, target: string, sectional: (duration: number) => Promise<Measured>, bare: (duration: number) => Promise<Measured>): Promise<Row[]> {
  if (!what.includes(flags.only)) return []
  await bare(warmUpSeconds)
  await sectional(warmUpSeconds)
  const pairs: { sectional: Measured, bare: Measured }[] = []
  for (let round = 0; round < rounds; round++) pairs.push({ bare: await bare(seconds), sectional: await sectional(seconds) })
  const row = {
    what, target,
    sectional: `${Math.round(median(pairs.map(pair => pair.sectional.perSecond)))}/s`,
    bare: `${Math.round(median(pairs.map(pair => pair.bare.perSecond)))}/s`,
    ratio: median(pairs.map(pair => pair.sectional.perSecond / pair.bare.perSecond)).toFixed(2),
    cpu: `${median(pairs.map(pair => pair.sectional.cpuUs)).toFixed(0)} / ${median(pairs.map(pair => pair.bare.cpuUs)).toFixed(0)} us`,
  }
  console.log(`${row.what}: ${row.sectional}, bare ${row.bare}, ratio ${row.ratio} ${row.target}, CPU ${row.cpu}`)
  return [row]
}

function compareBulk(label: string, cluster: MeasuredCluster, ids: IdOrder, target: string): Promise<Row[]> {
  return compare(`${label}: \`_bulk_docs\` of ${batch}, documents with ${ids} ids`, target,
    duration => rate(cluster.nodes, 'bulk', duration, ids), duration => bareBulkRate(duration, ids))
}

async function fill(cluster: MeasuredCluster): Promise<void> {
  await cluster.send('PUT', `/${database}`, null, 201)
  for (let from = 0; from < documents; from += batch) {
    const docs = Array.from({ length: batch }, (_, index) => ({ _id: `doc-${from + index}`, ...JSON.parse(documentBody(from + index, bodyBytes)) }))
    await cluster.send('POST', `/${database}/_bulk_docs`, { docs }, 201)
  }
}

async function measureNodes(count: number, targets: readonly string[]): Promise<{ readonly rows: Row[]; readonly idleMiB: number }> {
  const label = count === 1 ? 'one node' : `${count} nodes`
  const cluster = await MeasuredCluster.start(count, flags.folder)
  const bare = await startBareServer(bodyBytes)
  try {
    await pause(idleSeconds * 1000)
    const idleMiB = Math.max(...cluster.nodes.map(node => residentMiB(node.processId)))
    await fill(cluster)
    return {
      idleMiB,
      rows: [
        ...await compare(`${label}: GET of random documents`, targets[0]!, duration => rate(cluster.nodes, 'get', duration), duration => rate([bare], 'get', duration)),
        ...await compare(`${label}: durable PUT of new documents`, targets[1]!, duration => rate(cluster.nodes, 'put', duration), duration => rate([bare], 'put', duration)),
        ...await compareBulk(label, cluster, 'random', targets[2]!),
        ...await compareBulk(label, cluster, 'ascending', 'reported'),
      ],
    }
  } finally {
    await bare.stop()
    await cluster.stop()
  }
}

/** An empty cluster with many databases (q=2, n=3 on three nodes). */
async function measureManyDatabases(): Promise<string[]> {
  const cluster = await MeasuredCluster.start(3, flags.folder)
  try {
    const startedAt = performance.now()
    for (let from = 0; from < idleDatabases; from += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => cluster.send('PUT', `/empty-${from + index}?q=2`, null, 201)))
    }
    const createSeconds = (performance.now() - startedAt) / 1000
    await pause(idleSeconds * 1000)
    const files = Math.max(...cluster.nodes.map(node => openFiles(node.processId)))
    const memory = Math.max(...cluster.nodes.map(node => residentMiB(node.processId)))
    const lines = [`${idleDatabases} empty databases (q=2, n=3) on three nodes: ${files} open files and ${memory.toFixed(0)} MiB resident in the largest node; created in ${createSeconds.toFixed(1)} s`]
    console.log(lines[0])
    return lines
  } finally {
    await cluster.stop()
  }
}

function report(rows: readonly Row[], lines: readonly string[]): string {
  const [cpu] = cpus()
  const commands = rows.map(row => `| ${row.what} | ${row.sectional} | ${row.bare} | **${row.ratio}** | ${row.target} | ${row.cpu} |`)
  return [
    `Measured by \`scripts/bench\` on ${cpus().length} cores (${cpu?.model.trim()}), Node.js ${process.versions.node}: ${connections} connections (${bulkConnections} for`,
    `\`_bulk_docs\`), documents of ${bodyBytes} bytes, ${rounds} rounds of ${seconds} s in turns with the bare program; medians. The load generator`,
    'shares the cores. Bare: for GET and PUT a `node:http` server that reads the request and answers a constant; for',
    `\`_bulk_docs\` classic-level writing the same documents under the same ids in synced batches of ${batch}. CPU each: of the server processes,`,
    'theirs and the bare one\'s; it says more than the ratio when the machine does other things.',
    '',
    '| What | Sectional | Bare | Ratio | Target | CPU each |',
    '|---|---|---|---|---|---|',
    ...commands,
    '',
    ...lines.map(line => `- ${line}`),
    '',
  ].join('\n')
}

const one = await measureNodes(1, ['0.45 or more', '0.25 or more', '0.4 or more'])
if (flags.only !== '') process.exit(0)
const three = await measureNodes(3, ['reported', 'reported', 'reported'])
const lines = [
  `Idle node: ${one.idleMiB.toFixed(0)} MiB resident (a cluster of one), ${three.idleMiB.toFixed(0)} MiB (the largest of three); the target is under 120.`,
  ...await measureManyDatabases(),
]
const text = report([...one.rows, ...three.rows], lines)
console.log(`\n${text}`)
if (!flags['no-file']) {
  const page = new URL('../docs/performance.md', import.meta.url)
  const marker = '<!-- written by scripts/bench below this line -->\n'
  writeFileSync(page, `${readFileSync(page, 'utf8').split(marker)[0]}${marker}\n${text}`)
}
