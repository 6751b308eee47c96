/**
 * Measures how long writes on healthy nodes take while another node is stopped (SIGSTOP): `node bench/paused-peer.ts
 * [DIR] [--seconds 8] [--writers 16] [--nodes 3]`. DIR is another built checkout; by default this one is used. Each
 * writer edits its own document through one healthy node, at most ten times a second. All shards are used, and the
 * stopped node is the decider of some of them. Prints the latencies and statuses of the writes that began during the
 * pause.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { auth, MeasuredCluster } from './measured-cluster.ts'

const { values: flags, positionals: [checkout] } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '8' }, writers: { type: 'string', default: '16' },
    nodes: { type: 'string', default: '3' }, folder: { type: 'string' },
  },
})
const pauseSeconds = Number(flags.seconds)
const nodeCount = Number(flags.nodes)
const thinkMs = 100
const requestMsMax = 30_000
const headers = { authorization: `Basic ${Buffer.from(auth).toString('base64')}`, 'content-type': 'application/json' }

interface Write { readonly atMs: number; readonly tookMs: number; readonly status: number }

/** Edits one document until the time is over. */
async function edit(port: number, id: string, untilMs: number, writes: Write[]): Promise<void> {
  let revision: string | undefined
  for (let round = 0; performance.now() < untilMs; round++) {
    const atMs = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/bench/${id}`, {
      method: 'PUT', headers, body: JSON.stringify({ round, ...(revision !== undefined && { _rev: revision }) }),
      signal: AbortSignal.timeout(requestMsMax),
    })
    const body = await answer.json() as { readonly rev?: string }
    writes.push({ atMs, tookMs: performance.now() - atMs, status: answer.status })
    if (answer.ok) revision = body.rev
    else revision = (await (await fetch(`http://127.0.0.1:${port}/bench/${id}`, { headers })).json() as {
      readonly _rev?: string
    })._rev
    await pause(thinkMs)
  }
}

const cluster = await MeasuredCluster.start(nodeCount, flags.folder, checkout)
try {
  await cluster.send('PUT', '/bench?q=8', null, 201)
  await pause(3000)
  const stopped = cluster.nodes.at(-1)!
  const healthy = cluster.nodes.slice(0, -1)
  const writes: Write[] = []
  const untilMs = performance.now() + 2000 + pauseSeconds * 1000
  const writers = Array.from(
    { length: Number(flags.writers) },
    (_, index) => edit(healthy[index % healthy.length]!.port, `doc-${index}`, untilMs, writes),
  )
  await pause(2000)
  process.kill(stopped.processId, 'SIGSTOP')
  const stoppedAtMs = performance.now()
  await Promise.all(writers).finally(() => process.kill(stopped.processId, 'SIGCONT'))
  const during = writes.filter(({ atMs }) => atMs >= stoppedAtMs)
  const sorted = during.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  const at = (share: number): string =>
    `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)} ms`
  const answers = [...Map.groupBy(during, ({ status }) =>
    status)].map(([status, group]) => `${status}: ${group.length}`).join(', ')
  const latencies = `median ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}`
  console.log(`${during.length} writes in ${pauseSeconds} s: ${latencies}; answers ${answers}`)
} finally {
  await cluster.stop()
}
