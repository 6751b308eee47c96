/**
 * Spike of docs/decisions/0011-more-than-one-core.md: two ways in which processes share a port. `node
 * bench/spikes/cores/accept.ts [port=24900]` prints how 64 connections are distributed over 2 and 8 processes, and the
 * CPU time per request when each request has its own connection: of the process that starts the others, and of the
 * others.
 */
import { spawn } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const port = Number(process.argv[2] ?? 24_900)
const host = '127.0.0.1'
const heldConnections = 64
const requests = 6000
const settleMs = 300

interface Report { readonly connections: number; readonly cpuUs: number }

const cpuUs = (): number => { const { user, system } = process.cpuUsage(); return user + system }

/** Serves until the process is ended. */
function serve(reusePort: boolean): void {
  let connections = 0
  const server = createServer((_, response) => response.end('x'))
  server.on('connection', () => connections++)
  process.on('message', () => process.send?.({ connections, cpuUs: cpuUs() } satisfies Report))
  server.listen({ port, host, reusePort }, () => process.send?.('listening'))
}

/** Source of a client that runs in its own process and opens 32 connections at a time. */
const client = `
  const { connect } = require('node:net')
  let left = ${requests}
  const one = () => {
    if (left-- <= 0) return
    const socket = connect(${port}, '${host}')
    socket.write('GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')
    socket.resume().on('close', one)
  }
  for (let at = 0; at < 32; at++) one()`

async function measure(reusePort: boolean, processes: number): Promise<void> {
  const workers = Array.from({ length: processes }, () => cluster.fork({ SHARED_PORT: reusePort ? 'reuse' : 'pass' }))
  const reply = async <T>(worker: Worker): Promise<T> => (await once(worker, 'message'))[0] as T
  const replies = <T>(): Promise<readonly T[]> => Promise.all(workers.map(worker => reply<T>(worker)))
  await replies()
  const ask = (): Promise<readonly Report[]> => {
    const answers = replies<Report>()
    for (const worker of workers) worker.send('report')
    return answers
  }
  const held = Array.from({ length: heldConnections }, () => connect(port, host))
  await Promise.all(held.map(socket => once(socket, 'connect')))
  await pause(settleMs)
  const spread = (await ask()).map(({ connections }) => connections).join(' ')
  for (const socket of held) socket.destroy()
  const before = await ask()
  const ownBefore = cpuUs()
  await once(spawn(process.execPath, ['-e', client], { stdio: 'inherit' }), 'exit')
  const own = cpuUs() - ownBefore
  const others = (await ask()).reduce((sum, report, at) => sum + report.cpuUs - before[at]!.cpuUs, 0)
  const way = reusePort ? 'reusePort' : 'node:cluster'
  const [first, rest] = [own, others].map(us => (us / requests).toFixed(1))
  console.log(`${way}, ${processes} processes: ${heldConnections} connections spread ${spread}`)
  console.log(`  CPU for each request: ${first} us in the first process, ${rest} us in the others`)
  await Promise.all(workers.map(async worker => {
    const ended = once(worker, 'exit')
    worker.process.kill()
    await ended
  }))
}

if (process.env.SHARED_PORT !== undefined) serve(process.env.SHARED_PORT === 'reuse')
else for (const processes of [2, 8]) for (const reusePort of [false, true]) await measure(reusePort, processes)
