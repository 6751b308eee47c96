/**
 * How long a cluster of three is silent while one client sends it the costliest bodies: the longest wait for `/_up` on
 * any node, the most memory, and links that were lost. After a build:
 * `node bench/worst-bodies.ts [checkout=this one] [text in the names of bodies]`. Each body is sent once; a node that does
 * not answer within a minute is given up. Linux.
 */
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { acceptedBodies, foundBodies, type WorstBody } from '../test-cluster/src/worst-bodies.ts'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { residentMiB, type MeasuredServer } from './measured-process.ts'

const answerMsMax = 60_000
const probeMs = 20
const [checkout, text = ''] = process.argv.slice(2)

/** Status, or the code of the error. */
function send({ port }: MeasuredServer, method: string, path: string, body: Uint8Array | undefined, headers: Record<string, string> = {}): Promise<string> {
  return new Promise(resolve => {
    const sent = request({ port, method, path, auth, headers: { ...(body && { 'content-type': 'application/json', 'content-length': body.length }), accept: 'application/json', ...headers } }, answer => {
      let said = ''
      answer.on('data', chunk => { if (said.length < 200) said += String(chunk) })
      answer.on('end', () => resolve(answer.statusCode! < 300 ? String(answer.statusCode) : `${answer.statusCode} ${said.trim().slice(0, 160)}`))
      answer.on('error', error => resolve(String((error as NodeJS.ErrnoException).code)))
    })
    sent.on('error', error => resolve(String((error as NodeJS.ErrnoException).code)))
    sent.setTimeout(answerMsMax, () => sent.destroy(Object.assign(new Error('no answer'), { code: 'no answer' })))
    sent.end(body)
  })
}

class Watch {
  longestMs = 0
  peakMiB = 0
  #ended = false
  readonly #probes: Promise<void>[]

  constructor(nodes: readonly MeasuredServer[]) {
    this.#probes = nodes.map(node => this.#probe(node))
  }

  async end(): Promise<void> {
    this.#ended = true
    await Promise.all(this.#probes)
  }

  async #probe(node: MeasuredServer): Promise<void> {
    while (!this.#ended) {
      const startedAt = performance.now()
      await send(node, 'GET', '/_up', undefined)
      this.longestMs = Math.max(this.longestMs, performance.now() - startedAt)
      try {
        this.peakMiB = Math.max(this.peakMiB, residentMiB(node.processId))
      } catch {
        return
      }
      await pause(probeMs)
    }
  }
}

async function measure(worst: WorstBody): Promise<void> {
  const cluster = await MeasuredCluster.start(3, undefined, checkout)
  try {
    await cluster.send('PUT', '/db', null, 201)
    await cluster.send('POST', '/db/_bulk_docs', { docs: Array.from({ length: 200 }, (_, index) => ({ _id: `d${index}`, a: 'x'.repeat(100) })) }, 201)
    const restMiB = Math.max(...cluster.nodes.map(({ processId }) => residentMiB(processId)))
    const body = worst.body()
    const watch = new Watch(cluster.nodes)
    const startedAt = performance.now()
    const said = await send(cluster.nodes[0]!, worst.method, `/db${worst.path}`, body, worst.headers)
    const seconds = (performance.now() - startedAt) / 1000
    await watch.end()
    console.log(`| ${worst.name} | ${(body.length / 1e6).toFixed(3)} | ${seconds.toFixed(1)} | ${watch.longestMs.toFixed(0)} | ${(watch.peakMiB - restMiB).toFixed(0)} | ${cluster.linksLost()} | ${said} |`)
  } finally {
    await cluster.stop()
  }
}

console.log('| body | MB | s | longest `/_up`, ms | MiB more resident | links lost | answer |\n|---|---|---|---|---|---|---|')
for (const worst of [...foundBodies, ...acceptedBodies]) if (worst.name.includes(text)) await measure(worst)
