/** One real node: a child process with its own folder. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HttpClient } from './http-client.ts'

const command = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url))

export const administrator = 'admin:cluster-test'
/** Few rounds, because tests send thousands of requests and do not test the strength of passwords. */
const passwordRounds = 10

export interface TestNodeOptions {
  readonly number: number
  readonly folder: string
  readonly httpPort: number
  readonly clusterPort: number
  /** Port that other nodes dial, which belongs to a proxy. */
  readonly advertisedPort: number
  readonly seedPorts: readonly number[]
  readonly secret: string
  /** Additional settings: values by `section/key`. */
  readonly settings?: Readonly<Record<string, string>>
  /** Additional environment variables of the process. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Maximum number of open file descriptors of the process; default: the limit of this process. */
  readonly descriptorsMax?: number | undefined
}

export class TestNode {
  readonly number: number
  readonly name: string
  readonly http: HttpClient
  readonly #options: TestNodeOptions
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(options: TestNodeOptions) {
    this.#options = options
    this.number = options.number
    this.name = `node${options.number}@127.0.0.1`
    this.http = new HttpClient(options.httpPort, administrator)
    mkdirSync(options.folder, { recursive: true })
    writeFileSync(join(options.folder, 'local.ini'), this.#ini())
  }

  /** Address of the cluster listener for other nodes. */
  get seed(): string {
    return `127.0.0.1:${this.#options.advertisedPort}`
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
    const { descriptorsMax, environment, folder } = this.#options
    const words = [process.execPath, command, 'node', '--config', folder]
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
   * Limits the size of the files that the running process writes, as a full disk would: a write beyond it fails with
   * EFBIG. It needs no rights, but the program prlimit (util-linux).
   *
   * @param bytes the limit; null removes it
   */
  limitFiles(bytes: number | null): void {
    if (this.processId === undefined) return
    execFileSync('prlimit', ['--pid', String(this.processId), `--fsize=${bytes ?? 'unlimited'}:unlimited`])
  }

  /** Removes the data of the node, but not its configuration. */
  wipe(): void {
    if (this.#child) throw new Error(`${this.name} runs`)
    rmSync(join(this.#options.folder, 'data'), { recursive: true })
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
    const { httpPort, clusterPort, advertisedPort, seedPorts, secret, settings = {} } = this.#options
    const values: Record<string, string> = {
      'node/name': this.name,
      'chttpd/port': String(httpPort),
      'chttpd_auth/iterations': String(passwordRounds),
      'cluster/port': String(clusterPort),
      'cluster/advertised_address': `127.0.0.1:${advertisedPort}`,
      'cluster/seedlist': seedPorts.map(port => `127.0.0.1:${port}`).join(','),
      'cluster/secret': secret,
      'admins/admin': administrator.split(':')[1]!,
      ...settings,
    }
    return Object.entries(values).map(([name, value]) => `[${name.split('/')[0]}]\n${name.split('/')[1]} = ${value}\n`)
      .join('')
  }
}
