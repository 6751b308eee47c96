/**
 * Measures round trips over loopback WebSockets between two processes: `node --conditions=sectional-source
 * packages/rpc/bench/round-trips.ts [in flight] [body bytes] [seconds]`. The server answers `openDocument` with a body,
 * and the client counts the calls. Each prints its CPU time for each call.
 */
import { fork } from 'node:child_process'
import type { ShardReplica } from '@sectional/core'
import { createPeerNetwork } from '@sectional/rpc'
import { createMemoryRuntime, MemoryLog, RealClock, RealRandom, WebSocketNetwork } from '@sectional/runtime'
import type { Runtime } from '@sectional/runtime'

const inFlight = Number(process.argv[2] ?? 64)
const bodyBytes = Number(process.argv[3] ?? 1024)
const seconds = Number(process.argv[4] ?? 3)
const shard = { incarnation: '0123456789abcdef', range: { begin: 0, end: 0xffffffff } }
const context = { timeoutMs: 5000, requestId: 'a1b2c3d4e5' }

function makeNetwork(node: string) {
  const log = new MemoryLog()
  const network = new WebSocketNetwork()
  const runtime: Runtime = {
    ...createMemoryRuntime({ log }), clock: new RealClock(), random: new RealRandom(), network,
  }
  return createPeerNetwork({
    runtime, log, secret: 'x'.repeat(32), listen: { host: '127.0.0.1', port: 0 },
    identity: { node, address: `${node}:1`, clusterId: 'bench' },
  })
}

const unused = (): never => { throw new Error('not part of the benchmark') }
const cpuMicros = (): number => { const { user, system } = process.cpuUsage(); return user + system }

async function serve(): Promise<void> {
  const body = Buffer.alloc(bodyBytes, 0x20)
  const leaves = [{ revision: '1-0123456789abcdef0123456789abcdef', deleted: false }]
  const replica = { openDocument: async () => ({ leaves, sequence: 1, body }) } as unknown as ShardReplica
  const network = makeNetwork('server')
  await network.start({ replica: () => replica, indexes: unused, control: unused })
  process.on('message', message => { if (message === 'cpu') process.send?.({ cpu: cpuMicros() }) })
  process.on('disconnect', () => process.exit())
  process.send?.({ port: network.listening?.port })
}

async function run(): Promise<void> {
  const child = fork(import.meta.filename, process.argv.slice(2), {
    env: { ...process.env, RPC_BENCH_SERVER: '1' }, execArgv: process.execArgv,
  })
  const reply = (): Promise<{ port: number; cpu: number }> =>
    new Promise(resolve => { child.once('message', message => { resolve(message as never) }) })
  const { port } = await reply()
  const network = makeNetwork('client')
  await network.start({ replica: unused, indexes: unused, control: unused })
  const up = new Promise<void>(resolve => { network.onChange(() => resolve()) })
  network.setPeers([`127.0.0.1:${port}`])
  await up
  const remote = network.replica('server', shard)
  let calls = 0
  let stopMs = performance.now() + 1000
  const worker = async (): Promise<void> => {
    while (performance.now() < stopMs) {
      await remote.openDocument({ id: `document-${calls % 100_000}`, body: true, tree: false }, context)
      calls++
    }
  }
  const load = (): Promise<unknown> => Promise.all(Array.from({ length: inFlight }, worker))
  await load()
  const childCpu = (): Promise<{ cpu: number }> => { const answer = reply(); child.send('cpu'); return answer }
  const before = { own: cpuMicros(), far: (await childCpu()).cpu, ms: performance.now() }
  calls = 0
  stopMs = performance.now() + seconds * 1000
  await load()
  const tookMs = performance.now() - before.ms
  const own = (cpuMicros() - before.own) / calls
  const far = ((await childCpu()).cpu - before.far) / calls
  const rate = Math.round(calls / tookMs * 1000)
  const cpu = `caller ${own.toFixed(1)} us, server ${far.toFixed(1)} us`
  console.log(`${inFlight} in flight, ${bodyBytes} B bodies: ${rate} calls/s; CPU per call: ${cpu}`)
  await network.stop()
  child.disconnect()
}

await (process.env.RPC_BENCH_SERVER ? serve() : run())
