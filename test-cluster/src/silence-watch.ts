/** Watches nodes during expensive requests: the longest wait for `/_up`, and the maximum memory (Linux). */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { WorstBody } from './worst-bodies.ts'

const probeMs = 20
const answerMsMax = 60_000
const textMax = 300

export interface WatchedNode { readonly port: number; readonly processId: number }

/** Returns the resident memory in MiB (Linux). @throws Error when the process has ended */
export function residentMiB(processId: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))
  return Number(line?.[1]) / 1024
}

/** Returns the CPU time of the process's main thread in milliseconds (Linux). */
function threadMs(processId: number): number {
  return Number(readFileSync(`/proc/${processId}/task/${processId}/schedstat`, 'latin1').split(' ')[0]) / 1e6
}

/** Sends requests repeatedly until `end`. */
export class SilenceWatch {
  /** Longest wait for an answer, in milliseconds. */
  longestMs = 0
  /**
   * Maximum CPU milliseconds of a node's main thread during one wait for an answer. On an idle machine, the wait takes
   * this long.
   */
  busiestMs = 0
  peakMiB = 0
  #ended = false
  readonly #probes: Promise<void>[]

  constructor(nodes: readonly WatchedNode[]) {
    this.#probes = nodes.map(node => this.#probe(node))
  }

  async end(): Promise<void> {
    this.#ended = true
    await Promise.all(this.#probes)
  }

  async #probe({ port, processId }: WatchedNode): Promise<void> {
    while (!this.#ended) {
      const startedAt = performance.now()
      const startedMs = threadMs(processId)
      const up = await send(port, 'GET', '/_up')
      this.longestMs = up.status === 200
        ? Math.max(this.longestMs, performance.now() - startedAt)
        : Number.POSITIVE_INFINITY
      if (up.status === 0) return
      this.busiestMs = Math.max(this.busiestMs, threadMs(processId) - startedMs)
      this.peakMiB = Math.max(this.peakMiB, residentMiB(processId))
      await pause(probeMs)
    }
  }
}

export interface ShortAnswer {
  /** The status; 0 when the connection broke or there was no answer within a minute. */
  readonly status: number
  /** The beginning of the body, or the code of the error. */
  readonly text: string
}

/** Sends an expensive body to a database as the administrator. */
export function sendWorst(
  port: number, auth: string, database: string, { method, path, headers }: WorstBody, body: Uint8Array,
): Promise<ShortAnswer> {
  return send(port, method, `/${database}${path}`, {
    auth, body, headers: { 'content-type': 'application/json', 'content-length': String(body.length), ...headers },
  })
}

interface Sent {
  readonly auth?: string
  readonly body?: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

function send(port: number, method: string, path: string, { auth, body, headers }: Sent = {}): Promise<ShortAnswer> {
  return new Promise(resolve => {
    const failed = (error: NodeJS.ErrnoException): void => resolve({ status: 0, text: error.code ?? error.message })
    const outgoing = request({
      host: '127.0.0.1', port, method, path, ...(auth !== undefined && { auth }),
      headers: { accept: 'application/json', ...headers }, agent: false,
    }, incoming => {
      let text = ''
      incoming.on('data', chunk => { if (text.length < textMax) text += String(chunk) })
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text: text.slice(0, textMax).trim() }))
      incoming.on('error', failed)
    })
    outgoing.on('error', failed)
    outgoing.setTimeout(answerMsMax, () => outgoing.destroy(new Error('no answer')))
    outgoing.end(body)
  })
}
