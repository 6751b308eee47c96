/**
 * Measures the cost of many databases: the rate and CPU of creations while there are few and while there are many,
 * memory, open files and CPU at rest, `_all_dbs`, and the time of a start. After a build: `node bench/many-databases.ts
 * [--databases 20000] [--nodes 1] [--minutes 10] [--folder DIR] [--port FIRST]`. The databases have q = 1 and n = the
 * number of nodes. The program creates no more databases when its minutes are over, and prints how many exist. Linux
 * only.
 */
import { parseArgs } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { cpuUs, openFiles, residentMiB } from './measured-process.ts'

const { values: flags } = parseArgs({
  options: {
    databases: { type: 'string', default: '20000' }, nodes: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '10' },
    folder: { type: 'string' }, port: { type: 'string' },
  },
})
const databases = Number(flags.databases)
const nodes = Number(flags.nodes)
const deadline = performance.now() + Number(flags.minutes) * 60_000
const creators = 16
const few = 100
const window = 500
const settleMs = 10_000
const quietMsMax = 300_000
const idleMs = 10_000
const listings = 20
const startMsMax = 300_000

const authorization = `Basic ${Buffer.from(auth).toString('base64')}`
const cluster = await MeasuredCluster.start(
  nodes, flags.folder, undefined, flags.port === undefined ? undefined : Number(flags.port),
)
let created = 0

function cpu(): number {
  return cluster.nodes.reduce((sum, { processId }) => sum + cpuUs(processId), 0)
}

function each(measure: (processId: number) => number): string {
  return cluster.nodes.map(({ processId }) => measure(processId).toFixed(0)).join(', ')
}

/** Creates databases until there are `count` of them, or the time is over. */
async function createUpTo(count: number): Promise<void> {
  const from = created
  const cpuBefore = cpu()
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: creators }, async () => {
    while (created < count && performance.now() < deadline) {
      await cluster.send('PUT', `/user-${String(created++).padStart(6, '0')}?q=1&n=${nodes}`, null, 201)
    }
  }))
  const more = created - from
  if (more === 0) return
  const seconds = (performance.now() - startedAt) / 1000
  const cpuMs = (cpu() - cpuBefore) / 1000 / more
  console.log(`databases ${from} to ${created}: ${(more / seconds).toFixed(0)} creations a second, `
    + `${cpuMs.toFixed(2)} ms CPU each on all nodes`)
}

async function passesLeft(): Promise<number> {
  const counts = await Promise.all(cluster.nodes.map(async ({ port }) => {
    const answer = await fetch(`http://127.0.0.1:${port}/_node/_local/_prometheus`, { headers: { authorization } })
    return Number(/^sectional_anti_entropy_jobs(?:\{[^}]*\})? (\d+)/m.exec(await answer.text())?.[1])
  }))
  return counts.reduce((sum, count) => sum + count, 0)
}

/**
 * Waits until anti-entropy has compared the replicas of new databases, or after a start all replicas, in the
 * background.
 */
async function antiEntropyAtRest(): Promise<string> {
  const startedAt = performance.now()
  await pause(settleMs)
  while (await passesLeft() > 0) {
    if (performance.now() - startedAt > quietMsMax) return `anti-entropy has ${await passesLeft()} passes left`
    await pause(1000)
  }
  return `anti-entropy at rest after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`
}

async function atRest(when: string): Promise<void> {
  const quiet = await antiEntropyAtRest()
  const before = cpu()
  await pause(idleMs)
  const percent = (cpu() - before) / 10 / idleMs / nodes
  const used = `resident ${each(residentMiB)} MiB, open files ${each(openFiles)}, ${percent.toFixed(1)} % CPU a node`
  console.log(`${when}: ${used}; ${quiet}`)
}

async function listAll(query: string): Promise<void> {
  const times: number[] = []
  const [node] = cluster.nodes
  const before = cpuUs(node!.processId)
  let bytes = 0
  for (let at = 0; at < listings; at++) {
    const startedAt = performance.now()
    const answer = await fetch(`http://127.0.0.1:${node!.port}/_all_dbs${query}`, { headers: { authorization } })
    bytes = (await answer.arrayBuffer()).byteLength
    times.push(performance.now() - startedAt)
  }
  const medianMs = times.toSorted((a, b) => a - b)[listings / 2]!
  const cpuMs = (cpuUs(node!.processId) - before) / 1000 / listings
  console.log(`_all_dbs${query}: ${medianMs.toFixed(1)} ms, ${cpuMs.toFixed(1)} ms CPU, ${bytes} bytes`)
}

console.log(`${nodes} node${nodes === 1 ? '' : 's'}, q = 1, n = ${nodes}`)
await createUpTo(Math.min(few, databases))
await createUpTo(Math.min(few + window, databases))
await atRest(`at ${created} databases`)
await createUpTo(databases - window)
await createUpTo(databases)
await atRest(`at ${created} databases`)
await listAll('')
await listAll('?limit=100')
const startMs = await cluster.restart(startMsMax)
console.log(
  `start of all nodes: ${(startMs / 1000).toFixed(1)} s until ready, ${(cpu() / 1e6 / nodes).toFixed(1)} s CPU a node`,
)
await atRest('after the start')
await cluster.stop()
