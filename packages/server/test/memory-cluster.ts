/** Complete nodes in this process on one manual clock: production wiring on the runtime's memory implementations. */
import { pbkdf2Sync } from 'node:crypto'
import {
  ManualClock, MemoryDisk, MemoryLog, MemoryNetworkHub, SeededRandom, createMemoryRuntime, type MemoryRuntime,
} from '@sectional/runtime'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { createNode, type Node, type NodeSeams } from '../src/node.ts'

const secret = 'a secret of more than thirty-two characters'
export const passwordHash = `-pbkdf2:sha256-${pbkdf2Sync('password', 'salt', 1, 32, 'sha256').toString('hex')},salt,1`
const stepMs = 20
const stepsMax = 5000

export interface MemoryAnswer {
  readonly status: number
  readonly body: any
}

interface Life { readonly runtime: MemoryRuntime; readonly node: Node }

export class MemoryCluster {
  readonly clock = new ManualClock()
  readonly hub = new MemoryNetworkHub({ clock: this.clock })
  readonly names: readonly string[]
  readonly #disks: readonly MemoryDisk[]
  readonly #lives = new Map<number, Life>()
  /** Number of nodes that were made. */
  #made = 0
  readonly #seams: NodeSeams
  readonly #settings: readonly string[]
  /** The texts of the nodes' files with the changes over HTTP. */
  readonly changes: string[]
  /** Called before a node writes its file with the changes over HTTP. */
  beforeWrite: (number: number) => Promise<void> = async () => {}

  /** @param settings additional lines of the configuration of each node, which a reload reads again */
  constructor(count: number, seams: NodeSeams = {}, settings: readonly string[] = []) {
    this.#seams = seams
    this.#settings = settings
    this.names = Array.from({ length: count }, (_, index) => `node${index + 1}@memory`)
    this.changes = this.names.map(() => '')
    this.#disks = this.names.map(() => new MemoryDisk(this.clock))
  }

  async start(number: number): Promise<void> {
    const life = await this.make(number)
    await this.finish(life.node.start())
    this.#lives.set(number, life)
  }

  /** Creates a node on its disk without starting it. */
  async make(number: number): Promise<Life> {
    const name = this.names[number - 1]!
    const seeds = this.names.map((_, index) => `host${index + 1}:9000`).join(',')
    const ini = (): string => [
      '[node]', `name = ${name}`,
      '[cluster]', 'port = 9000', `bind_address = host${number}`, `advertised_address = host${number}:9000`,
      `seedlist = ${seeds}`, `secret = ${secret}`,
      '[admins]', `admin = ${passwordHash}`, ...this.#settings, '',
    ].join('\n')
    const configuration = await LiveConfiguration.load(
      {
        read: async () => [
          { name: 'local.ini', text: ini() }, { name: 'changed-over-http.ini', text: this.changes[number - 1]! },
        ],
        write: async ({ text }) => {
          await this.beforeWrite(number)
          this.changes[number - 1] = text
        },
      }, {},
    )
    const runtime = createMemoryRuntime({
      node: `host${number}`, clock: this.clock, hub: this.hub, disk: this.#disks[number - 1],
      // Not the numbers of the life before: the metadata would take the next commands for repeated ones.
      random: new SeededRandom(number + this.names.length * this.#made++),
    })
    const node = createNode(runtime, {
      options: nodeOptions(configuration.settings()), configuration, version: '0.0.0', seams: this.#seams,
      onFatal: error => { throw error },
    })
    return { runtime, node }
  }

  async stop(number: number): Promise<void> {
    const { node } = this.#life(number)
    this.#lives.delete(number)
    await this.finish(node.stop())
  }

  /** Simulates a crash: unsynced writes are lost. */
  crash(number: number): void {
    this.#life(number).runtime.revoke()
    this.#lives.delete(number)
  }

  /** Returns the running node. */
  node(number: number): Node {
    return this.#life(number).node
  }

  /** Returns the log of the running node. */
  log(number: number): MemoryLog {
    return this.#life(number).runtime.log as MemoryLog
  }

  disk(number: number): MemoryDisk {
    return this.#disks[number - 1]!
  }

  /**
   * Sends one request.
   * @param login name and password with a colon between; empty: the client is not logged in
   * @param more further headers
   */
  async send(
    number: number, method: string, target: string, json?: unknown, login = 'admin:password',
    more: Readonly<Record<string, string>> = {},
  ): Promise<MemoryAnswer> {
    const { runtime } = this.#life(number)
    const headers: Record<string, string> = { accept: 'application/json', ...more }
    if (login !== '') headers['authorization'] = `Basic ${Buffer.from(login).toString('base64')}`
    if (json !== undefined) headers['content-type'] = 'application/json'
    const answer = await this.finish(
      runtime.http.inject({ method, target, headers, ...(json === undefined ? {} : { body: JSON.stringify(json) }) }),
    )
    return { status: answer.status, body: JSON.parse(Buffer.from(answer.body).toString()) }
  }

  /** Advances the clock until the promise settles. */
  async finish<Result>(promise: Promise<Result>): Promise<Result> {
    let settled = false
    const watched = promise.finally(() => { settled = true })
    watched.catch(() => {}) // seen by whoever awaits the result below
    for (let step = 0; !settled; step++) {
      if (step > stepsMax) throw new Error('it does not settle')
      await this.clock.advance(step === 0 ? 0 : stepMs)
    }
    return watched
  }

  /** Advances the clock until the condition holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    for (let step = 0; step < stepsMax; step++) {
      if (await condition()) return
      await this.clock.advance(stepMs)
    }
    throw new Error(`it did not come about: ${what}`)
  }

  async ready(): Promise<void> {
    for (const number of this.#lives.keys()) {
      await this.until(`node ${number} is up`, async () => (await this.send(number, 'GET', '/_up')).status === 200)
    }
  }

  async close(): Promise<void> {
    for (const number of [...this.#lives.keys()]) await this.stop(number)
  }

  #life(number: number): Life {
    const life = this.#lives.get(number)
    if (life === undefined) throw new Error(`node ${number} does not run`)
    return life
  }
}
