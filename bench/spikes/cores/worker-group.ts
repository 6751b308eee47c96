/**
 * Spike of docs/decisions/0011-more-than-one-core.md: several processes that serve one HTTP port. Unlike the workers of
 * the decision, each process is a complete Sectional node with its own name and vote. The spike shows the cost of the
 * hop to the process that has a shard, and which part of the work stays in a single process.
 */
import { execFileSync } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { documentBody } from '../../documents.ts'
import { auth } from '../../measured-cluster.ts'
import { residentMiB } from '../../measured-process.ts'

const command = fileURLToPath(new URL('../../../packages/server/dist/cli.js', import.meta.url))
const readyMsMax = 60_000

export const readDatabase = 'read'
export const writtenDatabase = 'written'

/** CPU time in microseconds. */
export interface GroupCpu {
  /** Time of all threads of all processes. */
  readonly total: number
  /** Time of the event loop's thread of each process. */
  readonly mainThreads: readonly number[]
}

/** The ports of a group. The first process is started alone and creates the database. */
export interface GroupPlan {
  /** One port for each process. Processes with the same port share it: connections are assigned in turn. */
  readonly httpPorts: readonly number[]
  readonly firstClusterPort: number
  /** Whether the first process has all shards, so that the others are front ends without data. */
  readonly dataInFirst: boolean
  /** The core on which all processes run; undefined: all cores. */
  readonly core?: number
}

export class WorkerGroup {
  readonly #plan: GroupPlan
  readonly #folder = mkdtempSync(join(tmpdir(), 'sectional-cores-'))
  readonly #workers: Worker[] = []

  constructor(plan: GroupPlan) {
    this.#plan = plan
  }

  /** Starts the processes, creates both databases (q = 8, n = 1) and fills the one that is read. */
  async start(documents: number, batch: number, bodyBytes: number): Promise<void> {
    const { dataInFirst, httpPorts } = this.#plan
    await this.#fork(0)
    if (!dataInFirst) await this.#forkOthers()
    for (const database of [readDatabase, writtenDatabase]) await this.#send('PUT', `/${database}?q=8&n=1`, null)
    for (let from = 0; from < documents; from += batch) {
      const docs = Array.from({ length: batch }, (_, at) => (
        { _id: `doc-${from + at}`, ...JSON.parse(documentBody(from + at, bodyBytes)) }
      ))
      await this.#send('POST', `/${readDatabase}/_bulk_docs`, { docs })
    }
    // A restart writes LevelDB's memory table to files, so that every group reads from files.
    await this.#end()
    await Promise.all(httpPorts.map((_, at) => this.#fork(at)))
  }

  cpu(): GroupCpu {
    const mainThreads = this.#workers.map(({ process: { pid } }) => threadCpuUs(pid!, pid!))
    const total = this.#workers.reduce((sum, { process: { pid } }) => sum + processCpuUs(pid!), 0)
    return { total, mainThreads }
  }

  residentMiB(): number {
    return this.#workers.reduce((sum, { process: { pid } }) => sum + residentMiB(pid!), 0)
  }

  async stop(): Promise<void> {
    await this.#end()
    rmSync(this.#folder, { recursive: true })
  }

  async #end(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map(async worker => {
      if (worker.isDead()) return
      const ended = once(worker, 'exit')
      worker.process.kill('SIGTERM')
      await ended
    }))
  }

  async #forkOthers(): Promise<void> {
    await Promise.all(this.#plan.httpPorts.slice(1).map((_, at) => this.#fork(at + 1)))
  }

  async #fork(at: number): Promise<void> {
    const { httpPorts, firstClusterPort } = this.#plan
    const folder = join(this.#folder, `process${at + 1}`)
    mkdirSync(folder, { recursive: true })
    const settings = [
      '[node]', `name = process${at + 1}@127.0.0.1`, '[chttpd]', `port = ${httpPorts[at]}`,
      '[cluster]', `port = ${firstClusterPort + at}`, `seedlist = 127.0.0.1:${firstClusterPort}`,
      `secret = ${'benchmark '.repeat(4)}secret`, '[admins]', 'admin = benchmark', '',
    ]
    writeFileSync(join(folder, 'local.ini'), settings.join('\n'))
    const log = openSync(join(folder, 'node.log'), 'a')
    cluster.setupPrimary({ exec: command, args: ['node', '--config', folder], stdio: ['ignore', log, log, 'ipc'] })
    const worker = cluster.fork()
    this.#workers[at] = worker
    if (this.#plan.core !== undefined) pinToCore(worker.process.pid!, this.#plan.core)
    // Processes share the port, so only the log shows whether this one is ready.
    const startedAt = performance.now()
    const position = readLog(folder).length
    while (!/"message":"listening"/.test(readLog(folder).slice(position))) {
      if (performance.now() - startedAt > readyMsMax) {
        throw new Error(`process ${at + 1} is not up:\n${readLog(folder).slice(-2000)}`)
      }
      await pause(50)
    }
    await this.#settled(httpPorts[at]!)
  }

  /** Waits until the port has answered so often in a row that each process that shares it was asked. */
  async #settled(port: number): Promise<void> {
    const startedAt = performance.now()
    for (let answers = 0; answers < 2 * this.#plan.httpPorts.length;) {
      if (performance.now() - startedAt > readyMsMax) throw new Error(`port ${port} does not answer /_up with 200`)
      const answer = fetch(`http://127.0.0.1:${port}/_up`, { headers: { connection: 'close' } })
      const status = await answer.then(({ status }) => status, () => 0)
      if (status === 200) answers++
      else {
        answers = 0
        await pause(50)
      }
    }
  }

  async #send(method: string, path: string, body: unknown): Promise<void> {
    const authorization = `Basic ${Buffer.from(auth).toString('base64')}`
    const answer = await fetch(`http://127.0.0.1:${this.#plan.httpPorts[0]}${path}`, {
      method, headers: { authorization, 'content-type': 'application/json' },
      body: body === null ? null : JSON.stringify(body),
    })
    const text = await answer.text()
    if (answer.status !== 201) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  }
}

/** Pins all threads of the process, including those that it starts later, to a core (Linux). */
export function pinToCore(processId: number, core: number): void {
  execFileSync('taskset', ['-a', '-c', '-p', String(core), String(processId)], { stdio: 'ignore' })
}

function readLog(folder: string): string {
  return readFileSync(join(folder, 'node.log'), 'utf8')
}

/**
 * Returns the CPU time of a thread from the scheduler (Linux), which counts nanoseconds; /proc/PID/stat has steps of 10
 * ms.
 */
function threadCpuUs(processId: number, threadId: number): number {
  return Number(readFileSync(`/proc/${processId}/task/${threadId}/schedstat`, 'latin1').split(' ')[0]) / 1000
}

function processCpuUs(processId: number): number {
  return readdirSync(`/proc/${processId}/task`).reduce((sum, thread) => sum + threadCpuUs(processId, Number(thread)), 0)
}
