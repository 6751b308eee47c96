/**
 * Measures the cost of idle continuous changes feeds: memory of each on one node, compared with open responses of a
 * bare node:http server, and CPU. After a build: `node bench/idle-readers.ts [readers=10000] [shards=8]`. Linux only;
 * the limit of open files must be higher than the number of readers.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { cpuUs, residentMiB, startBareProgram, type MeasuredServer } from './measured-process.ts'

const readers = Number(process.argv[2] ?? 10_000)
const shards = Number(process.argv[3] ?? 8)
const openingAtOnce = 50
const settleMs = 5_000
const idleMs = 10_000
const heartbeatMs = 60_000
const deliveryMsMax = 60_000

interface Reader { readonly socket: Socket; bytes: number }

const authorization = `Basic ${Buffer.from(auth).toString('base64')}`

/** Resolves when the first bytes of the response have arrived. */
function open(port: number, path: string): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const reader: Reader = { socket, bytes: 0 }
    socket.on('error', reject)
    socket.on('data', chunk => {
      if (reader.bytes === 0 && !chunk.subarray(0, 15).equals(Buffer.from('HTTP/1.1 200 OK'))) {
        reject(new Error(chunk.toString()))
      }
      reader.bytes += chunk.length
      resolve(reader)
    })
    socket.write([
      `GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, `Authorization: ${authorization}`,
      'Accept: application/json', 'User-Agent: bench', '', '',
    ].join('\r\n'))
  })
}

async function openAll({ port }: MeasuredServer, path: string): Promise<Reader[]> {
  const opened: Reader[] = []
  await Promise.all(Array.from({ length: openingAtOnce }, async () => {
    while (opened.length < readers) {
      const at = opened.push(undefined as never) - 1
      opened[at] = await open(port, path)
    }
  }))
  return opened
}

interface Cost { readonly kibEach: number; readonly cpuPercent: number }

async function measure(
  server: MeasuredServer, path: string,
): Promise<{ readonly cost: Cost; readonly opened: readonly Reader[] }> {
  const before = residentMiB(server.processId)
  const opened = await openAll(server, path)
  await pause(settleMs)
  const after = residentMiB(server.processId)
  const cpuBefore = cpuUs(server.processId)
  await pause(idleMs)
  const cpuPercent = (cpuUs(server.processId) - cpuBefore) / 10 / idleMs
  return { cost: { kibEach: (after - before) * 1024 / readers, cpuPercent }, opened }
}

async function deliver(cluster: MeasuredCluster, opened: readonly Reader[]): Promise<string> {
  const [node] = cluster.nodes
  const before = opened.map(reader => reader.bytes)
  const cpuBefore = cpuUs(node!.processId)
  const startedAt = performance.now()
  await cluster.send('PUT', '/idle/x', {}, 201)
  while (opened.some((reader, index) => reader.bytes === before[index])) {
    if (performance.now() - startedAt > deliveryMsMax) throw new Error('a change did not reach every reader')
    await pause(10)
  }
  const ms = performance.now() - startedAt
  const cpuUsEach = (cpuUs(node!.processId) - cpuBefore) / readers
  return `a change reaches all of them within ${ms.toFixed(0)} ms, ${cpuUsEach.toFixed(0)} us CPU each`
}

function show(what: string, { kibEach, cpuPercent }: Cost): void {
  const memory = `${kibEach.toFixed(1)} KiB each, ${(kibEach * readers / 1024).toFixed(0)} MiB in all`
  console.log(`${what}: ${memory}; ${cpuPercent.toFixed(2)} % CPU while idle`)
}

const bare = await startBareProgram('bare-open-responses.ts', [])
const { cost: bareCost, opened: bareOpened } = await measure(bare, '/')
show(`bare node:http, ${readers} open responses`, bareCost)
for (const { socket } of bareOpened) socket.destroy()
await bare.stop()

const cluster = await MeasuredCluster.start(1, undefined)
await cluster.send('PUT', `/idle?q=${shards}`, null, 201)
const { cost, opened } = await measure(cluster.nodes[0]!, `/idle/_changes?feed=continuous&heartbeat=${heartbeatMs}`)
show(`one node, ${readers} continuous feeds of a database of ${shards} shards`, cost)
console.log(`ratio ${(cost.kibEach / bareCost.kibEach).toFixed(1)}`)
console.log(await deliver(cluster, opened))
for (const { socket } of opened) socket.destroy()
await cluster.stop()
