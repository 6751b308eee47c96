/**
 * Spike of docs/decisions/0011-more-than-one-core.md: compares one process with several processes that share the work
 * of one node, in turns within one run. After a build: `node bench/spikes/cores/measure.ts [--groups workers-2,...]
 * [--seconds 1] [--rounds 12] [--warm-up 4] [--only TEXT] [--port 24000] [--one-core]` (Linux). Prints for each kind of
 * request: the median rates, the CPU time of all processes per item, the CPU time of the busiest event loop per item (a
 * thread cannot do more than its inverse), the CPU time of the load generator, and the cores that other work of the
 * machine used in the meantime. CPU figures are lower quartiles of the rounds, because other work can only increase
 * them, by evicting caches.
 *
 * With --one-core all measured processes run on one core and the load generator on another one. Each process then
 * always has work to do, as on a machine with a core for each process and enough clients, so the CPU time per item
 * shows what that machine would do. Without it the load generator uses the same cores, and processes that wait for it
 * send frames with few messages.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { auth } from '../../measured-cluster.ts'
import { runLoad, runScript } from '../../measured-process.ts'
import type { LoadJob } from '../../load.ts'
import type { TransferJob, TransferResult } from '../../transfers.ts'
import { WorkerGroup, pinToCore, readDatabase, writtenDatabase, type GroupPlan } from './worker-group.ts'

const { values: flags } = parseArgs({
  options: {
    groups: { type: 'string', default: 'workers-2,workers-8,front-ends-1' }, seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '12' }, only: { type: 'string', default: '' },
    'one-core': { type: 'boolean', default: false }, 'warm-up': { type: 'string', default: '4' },
    port: { type: 'string', default: '24000' },
  },
})
const seconds = Number(flags.seconds)
const firstPort = Number(flags.port)
const documents = 20_000
const batch = 1000
const bodyBytes = 1000
/** Warm-up time for each kind of request and each process. */
const warmUpSeconds = Number(flags['warm-up'])
let jobs = 0

interface Sample {
  readonly perSecond: number
  readonly cpuUs: number
  readonly busiestUs: number
  readonly loadUs: number
  readonly foreignCores: number
}
interface Pair { readonly one: Sample; readonly group: Sample }

/**
 * @param processes number of processes of the group. More processes get more clients, so that links carry as much as
 * with a core for each process
 */
type Work = (port: number, processes: number, seconds: number) => Promise<Done>
interface Done { readonly count: number; readonly seconds: number }

/**
 * `workers-N`: N processes that each have a part of the shards, on one port. `front-ends-N`: N processes on one port,
 * in front of one process that has the data.
 */
function plan(name: string, ports: number): GroupPlan & { readonly loadPort: number } {
  const [, kind, number] = /^(workers|front-ends)-(\d+)$/.exec(name) ?? []
  if (kind === undefined) throw new Error(`no such group: ${name}`)
  const count = Number(number)
  const shared = Array.from({ length: count }, () => ports)
  const common = { firstClusterPort: ports + 50, loadPort: ports }
  if (kind === 'workers') return { ...common, httpPorts: shared, dataInFirst: false }
  return { ...common, httpPorts: [ports + 1, ...shared], dataInFirst: true }
}

function requests(kind: LoadJob['kind'], connectionsEach: number): Work {
  return async (port, processes, seconds) => {
    const result = await runLoad({
      kind, ports: [port], connections: connectionsEach * processes, seconds, tag: `job${jobs++}`, ids: 'random',
      database: kind === 'get' ? readDatabase : writtenDatabase, documents, batch, bodyBytes, auth,
    })
    return { count: result.requests * (kind === 'bulk' ? batch : 1), seconds: result.seconds }
  }
}

function rows(path: string): Work {
  return async (port, processes, seconds) => {
    const connections = 4 * processes
    const address = { method: 'GET' as const, path: `/${readDatabase}/${path}`, port }
    const job: TransferJob = { ...address, connections, seconds, auth, tag: '' }
    const result = await runScript('transfers.ts', [JSON.stringify(job)]) as TransferResult
    return { count: result.requests * documents, seconds: result.seconds }
  }
}

const works: Readonly<Record<string, Work>> = {
  '_all_docs, rows': rows('_all_docs'),
  '_all_docs with documents, rows': rows('_all_docs?include_docs=true'),
  '_changes, rows': rows('_changes'),
  'GET of random documents': requests('get', 64),
  'durable PUT of new documents': requests('put', 64),
  '_bulk_docs of 1000, random ids': requests('bulk', 4),
}

/**
 * Returns the CPU microseconds that the machine, this process, and finished load generators have used (steps of 10 ms).
 */
function machineCpuUs(): { readonly all: number; readonly own: number; readonly load: number } {
  const machine = readFileSync('/proc/stat', 'latin1').slice('cpu'.length).trimStart()
  const [user, nice, system, , , irq, softirq] = numbers(machine)
  const own = numbers(readFileSync('/proc/self/stat', 'latin1').split(') ')[1]!.slice('S '.length)).slice(10)
  const tickUs = 10_000
  const all = (user! + nice! + system! + irq! + softirq!) * tickUs
  return { all, own: (own[0]! + own[1]!) * tickUs, load: (own[2]! + own[3]!) * tickUs }
}

function numbers(text: string): number[] {
  return text.split(/\s+/, 16).map(Number)
}

async function sample(group: WorkerGroup, work: Work, port: number, processes: number): Promise<Sample> {
  const before = group.cpu()
  const machineBefore = machineCpuUs()
  const startedAt = performance.now()
  const { count, seconds: took } = await work(port, processes, seconds)
  const tookUs = (performance.now() - startedAt) * 1000
  const after = group.cpu()
  const machine = machineCpuUs()
  const busiest = Math.max(...after.mainThreads.map((us, at) => us - before.mainThreads[at]!))
  const cpu = after.total - before.total
  const load = machine.load - machineBefore.load
  const foreign = machine.all - machineBefore.all - (machine.own - machineBefore.own) - load - cpu
  const each = { cpuUs: cpu / count, busiestUs: busiest / count, loadUs: load / count }
  return { perSecond: count / took, ...each, foreignCores: foreign / tookUs }
}

function foreignCores({ one, group }: Pair): number {
  return Math.max(one.foreignCores, group.foreignCores)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

/**
 * Returns the value below which a quarter of the values lie: other work only increases CPU time, by evicting caches.
 */
function lowerQuartile(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 4)]!
}

function row(what: string, measured: readonly Pair[]): string {
  const rates = (['one', 'group'] as const).map(which => median(measured.map(pair => pair[which].perSecond)).toFixed(0))
  const rateRatio = median(measured.map(pair => pair.group.perSecond / pair.one.perSecond))
  const quartiles = (pick: (values: Sample) => number): readonly [number, number] => [
    lowerQuartile(measured.map(pair => pick(pair.one))), lowerQuartile(measured.map(pair => pick(pair.group))),
  ]
  const [one, group] = quartiles(values => values.cpuUs)
  const [oneLoop, groupLoop] = quartiles(values => values.busiestUs)
  const [load] = quartiles(values => values.loadUs)
  return [
    '', what, ...rates, rateRatio.toFixed(2), one.toFixed(1), group.toFixed(1), `**${(group / one).toFixed(2)}**`,
    oneLoop.toFixed(1), groupLoop.toFixed(1), load.toFixed(1), median(measured.map(foreignCores)).toFixed(2), '',
  ].join(' | ').trim()
}

async function compare(name: string): Promise<void> {
  const { loadPort, ...groupPlan } = plan(name, firstPort + 200)
  const processes = groupPlan.httpPorts.length
  const core = flags['one-core'] ? { core: 0 } : {}
  const one = new WorkerGroup({ httpPorts: [firstPort], firstClusterPort: firstPort + 50, dataInFirst: false, ...core })
  const group = new WorkerGroup({ ...groupPlan, ...core })
  try {
    await one.start(documents, batch, bodyBytes)
    await group.start(documents, batch, bodyBytes)
    const resident = (): string => `${one.residentMiB().toFixed(0)} MiB, ${group.residentMiB().toFixed(0)} MiB`
    console.log(`\n${name}; resident at the start: ${resident()}\n`)
    const columns = [
      'What', 'Rate, one', 'Group', 'Ratio', 'CPU us each, one', 'Group', 'Ratio', 'Busiest loop us each, one', 'Group',
      'Load generator us each', 'Other work, cores',
    ]
    console.log(`| ${columns.join(' | ')} |`)
    console.log('|---|---|---|---|---|---|---|---|---|---|---|')
    const wanted = Object.entries(works).filter(([what]) => what.includes(flags.only))
    // V8 compiles hot functions in each process, on threads whose CPU time would be measured too. The warm-up avoids
    // that.
    for (const [, work] of wanted) {
      await work(firstPort, processes, warmUpSeconds)
      await work(loadPort, processes, warmUpSeconds * processes)
    }
    for (const [what, work] of wanted) {
      const measured: Pair[] = []
      for (let round = 0; round < Number(flags.rounds); round++) {
        const alone = await sample(one, work, firstPort, processes)
        measured.push({ one: alone, group: await sample(group, work, loadPort, processes) })
      }
      console.log(row(what, measured))
    }
    console.log(`\nresident at the end: ${resident()}`)
  } finally {
    await one.stop()
    await group.stop()
  }
}

if (flags['one-core']) pinToCore(process.pid, 1)
for (const name of flags.groups.split(',')) await compare(name)
