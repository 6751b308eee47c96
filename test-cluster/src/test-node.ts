/** One real node: a child process with its own folder. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NodePlace } from './cluster-network.ts'
import { HttpClient } from './http-client.ts'
import { SmallDisk } from './small-disk.ts'

const command = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url))

export const administrator = 'admin:cluster-test'
/** Few rounds, because tests send thousands of requests and do not test the strength of passwords. */
const passwordRounds = 10

export interface TestNodeOptions {
  readonly number: number
  readonly folder: string
  readonly place: NodePlace
  /** Addresses of the seed list. */
  readonly seeds: readonly string[]
  readonly secret: string
  /** Additional settings: values by `section/key`. */
  readonly settings?: Readonly<Record<string, string>>
  /** Additional environment variables of the process. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Maximum number of open file descriptors of the process; default: the limit of this process. */
  readonly descriptorsMax?: number | undefined
  /** Whether its data has a disk of its own. */
  readonly smallDisk?: boolean | undefined
}

export class TestNode {
  readonly number: number
  readonly name: string
  readonly http: HttpClient
  /** The disk of its data, when it is one of its own. */
  readonly disk: SmallDisk | undefined
  readonly #options: TestNodeOptions
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(options: TestNodeOptions) {
    this.#options = options
    this.number = options.number
    const { address, httpPort } = options.place
    this.name = `node${options.number}@${address}`
    this.http = new HttpClient(httpPort, administrator, { host: address })
    mkdirSync(options.folder, { recursive: true })
    if (options.smallDisk === true) this.disk = new SmallDisk(this.#data)
    writeFileSync(join(options.folder, 'local.ini'), this.#ini())
  }

  /** Address of the cluster listener for other nodes. */
  get seed(): string {
    return `${this.#options.place.address}:${this.#options.place.advertisedPort}`
  }

  get processId(): number | undefined {
    return this.#child?.pid
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  /** Starts the process. `TestCluster.ready` waits until it serves requests. */
  start(): void {
    if (this.#child) throw new Error(`${this.name} runs already`)
    const log = openSync(this.logFile, 'a')
    const { descriptorsMax, environment, folder, place } = this.#options
    const words = [...place.launcher, process.execPath, command, 'node', '--config', folder]
    const limited = descriptorsMax === undefined
      ? words
      : ['sh', '-c', `ulimit -n ${descriptorsMax}; exec "$@"`, 'sh', ...words]
    const child = spawn(limited[0]!, limited.slice(1), {
      stdio: ['ignore', log, log], env: { ...process.env, ...environment },
    })
    closeSync(log)
    this.#child = child
    this.#exited = new Promise(resolve => child.once('exit', () => { this.#child = undefined; resolve() }))
  }

  /** Stops the node in good order (SIGTERM). */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** Kills the process (SIGKILL), between two instructions. */
  async crash(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Pauses the process (SIGSTOP). Its connections stay open. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  continue(): void {
    this.#child?.kill('SIGCONT')
  }

  /**
   * Makes writes of the node fail after this many bytes. A disk of its own becomes full (ENOSPC) until the limit is
   * removed. Otherwise the size of the files of the running process is limited (EFBIG), which needs no rights, but the
   * program prlimit (util-linux), and ends with the process.
   *
   * @param bytes null removes the limit
   */
  limitDisk(bytes: number | null): void {
    if (this.disk !== undefined) return bytes === null ? this.disk.free() : this.disk.limit(bytes)
    if (this.processId === undefined) return
    execFileSync('prlimit', ['--pid', String(this.processId), `--fsize=${bytes ?? 'unlimited'}:unlimited`])
  }

  /** Removes the data of the node, but not its configuration. */
  wipe(): void {
    if (this.#child) throw new Error(`${this.name} runs`)
    rmSync(this.#data, { recursive: true })
  }

  get #data(): string {
    return join(this.#options.folder, 'data')
  }

  /** The folder of its configuration. */
  get folder(): string {
    return this.#options.folder
  }

  get logFile(): string {
    return join(this.#options.folder, 'node.log')
  }

  /** Returns the log of the node, which is empty before its first start. */
  log(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : ''
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#child?.kill(signal)
    await this.#exited
  }

  #ini(): string {
    const { place, seeds, secret, settings = {} } = this.#options
    const { address, httpPort, clusterPort, advertisedPort } = place
    const values: Record<string, string> = {
      'node/name': this.name,
      'chttpd/bind_address': address,
      'chttpd/port': String(httpPort),
      'chttpd_auth/iterations': String(passwordRounds),
      'cluster/bind_address': address,
      'cluster/port': String(clusterPort),
      'cluster/advertised_address': `${address}:${advertisedPort}`,
      'cluster/seedlist': seeds.join(','),
      'cluster/secret': secret,
      'admins/admin': administrator.split(':')[1]!,
      ...settings,
    }
    return Object.entries(values).map(([name, value]) => `[${name.split('/')[0]}]\n${name.split('/')[1]} = ${value}\n`)
      .join('')
  }
}
