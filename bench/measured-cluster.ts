/** Sectional nodes that are measured: real processes with default settings, in a folder of their own. */
import { spawn, type ChildProcess } from 'node:child_process'
import {
  existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { documentBody } from './documents.ts'
import { end, type MeasuredServer } from './measured-process.ts'

const ownCheckout = fileURLToPath(new URL('..', import.meta.url))
const startMsMax = 30_000

export const auth = 'admin:benchmark'

export class MeasuredCluster {
  readonly #ports: readonly number[]
  readonly #command: string
  readonly #folder: string
  #children: readonly ChildProcess[] = []

  private constructor(ports: readonly number[], command: string, folder: string) {
    this.#ports = ports
    this.#command = command
    this.#folder = folder
  }

  get nodes(): readonly MeasuredServer[] {
    return this.#children.map((child, index) => ({ port: this.#ports[index]!, processId: child.pid! }))
  }

  /**
   * @param checkout the built checkout of which nodes are started; by default this one
   * @param firstPort first port; each node uses two. By default free ports are used
   */
  static async start(
    count: number, folder: string | undefined, checkout = ownCheckout, firstPort?: number,
  ): Promise<MeasuredCluster> {
    const command = join(checkout, 'packages/server/dist/cli.js')
    const top = mkdtempSync(join(folder ?? tmpdir(), 'sectional-bench-'))
    const ports = firstPort === undefined
      ? await freePorts(count * 2)
      : Array.from({ length: count * 2 }, (_, at) => firstPort + at)
    const seeds = ports.slice(count).map(port => `127.0.0.1:${port}`).join(',')
    for (let index = 0; index < count; index++) {
      const nodeFolder = join(top, `node${index + 1}`)
      mkdirSync(nodeFolder)
      writeFileSync(join(nodeFolder, 'local.ini'), [
        '[node]', `name = node${index + 1}@127.0.0.1`,
        '[chttpd]', `port = ${ports[index]}`,
        '[cluster]', `port = ${ports[count + index]}`, `seedlist = ${seeds}`,
        `secret = ${'benchmark '.repeat(4)}secret`,
        '[admins]', 'admin = benchmark', '',
      ].join('\n'))
    }
    const cluster = new MeasuredCluster(ports, command, top)
    await cluster.#startNodes()
    return cluster
  }

  /** Restarts every node. Resolves when all are ready, with the milliseconds that the start took. */
  async restart(readyMsMax: number): Promise<number> {
    await Promise.all(this.#children.map(end))
    const startedAt = performance.now()
    await this.#startNodes(readyMsMax)
    return performance.now() - startedAt
  }

  async #startNodes(readyMsMax = startMsMax): Promise<void> {
    this.#children = Array.from({ length: this.#ports.length / 2 }, (_, index) => {
      const nodeFolder = join(this.#folder, `node${index + 1}`)
      const log = openSync(join(nodeFolder, 'node.log'), 'a')
      return spawn(process.execPath, [this.#command, 'node', '--config', nodeFolder], { stdio: ['ignore', log, log] })
    })
    for (const [index, node] of this.nodes.entries()) await this.#ready(node, index, readyMsMax)
  }

  /** Sends JSON, and returns the response. @throws Error when the response has another status */
  async send(method: string, path: string, body: unknown, status: number): Promise<string> {
    return this.sendText(method, path, body === null ? null : JSON.stringify(body), status)
  }

  /** Sends JSON text, and returns the response. @throws Error when the response has another status */
  async sendText(method: string, path: string, body: string | null, status: number): Promise<string> {
    const headers = {
      authorization: `Basic ${Buffer.from(auth).toString('base64')}`, 'content-type': 'application/json',
    }
    const answer = await fetch(`http://127.0.0.1:${this.nodes[0]!.port}${path}`, {
      method, headers, body,
    })
    const text = await answer.text()
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }

  /** Creates a database with `documents` documents `doc-0`, `doc-1` ..., which are stored in requests of `batch`. */
  async fill(database: string, documents: number, batch: number, bodyBytes: number): Promise<void> {
    await this.send('PUT', `/${database}`, null, 201)
    for (let from = 0; from < documents; from += batch) {
      const docs = Array.from(
        { length: batch },
        (_, index) => ({ _id: `doc-${from + index}`, ...JSON.parse(documentBody(from + index, bodyBytes)) }),
      )
      await this.send('POST', `/${database}/_bulk_docs`, { docs }, 201)
    }
  }

  /** Returns the bytes of all files in a folder of a node's data; 0 when there is no such folder. */
  dataBytes(node: number, folder: string): number {
    const top = join(this.#folder, `node${node + 1}`, 'data', folder)
    if (!existsSync(top)) return 0
    return readdirSync(top, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
      .reduce((total, { parentPath, name }) => total + statSync(join(parentPath, name)).size, 0)
  }

  /** Returns the number of links that have ended since the nodes started, according to their logs. */
  linksLost(): number {
    return this.nodes.reduce((count, _, index) => count + (this.#log(index).match(/a link closed/g)?.length ?? 0), 0)
  }

  #log(index: number): string {
    return readFileSync(join(this.#folder, `node${index + 1}`, 'node.log'), 'utf8')
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map(end))
    rmSync(this.#folder, { recursive: true })
  }

  async #ready({ port }: MeasuredServer, index: number, readyMsMax: number): Promise<void> {
    const startedAt = performance.now()
    for (;;) {
      const status = await fetch(`http://127.0.0.1:${port}/_up`).then(answer => answer.status, () => 0)
      if (status === 200) return
      if (performance.now() - startedAt > readyMsMax) {
        throw new Error(`node${index + 1} is not up:\n${this.#log(index).slice(-2000)}`)
      }
      await pause(50)
    }
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise<Server>(resolve => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => resolve(server))
  })))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
