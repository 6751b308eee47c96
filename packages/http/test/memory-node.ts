/**
 * A node for tests of the HTTP layer: the real coordinator over replicas in memory, and test doubles of everything
 * else.
 */
import { pbkdf2Sync } from 'node:crypto'
import { ApiError, shardKey, shardRanges, type ShardId, type ShardReplica } from '@sectional/core'
import { LiveOptions } from '@sectional/core/options'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import type { AuditEvent } from '../src/audit/audit.ts'
import {
  adminOnlySecurity, createCoordinator, DatabaseEvents, DatabaseMap, type ClusterState, type CommitListener,
  type ControlPlane, type CoordinatorNode, type CreateDatabaseOptions, type DatabaseRecord,
} from '@sectional/cluster'
import {
  createMemoryRuntime, ManualClock, MemoryLog, MemoryMachine, ResponseCutError, SeededRandom,
  type HttpServer, type InjectedResponse, type MemoryRuntime, type PasswordDigest, type Sandbox,
} from '@sectional/runtime'
import {
  createHttpApi, httpDeclarations, type Configuration, type HttpApi, type HttpOptions, type NodeInformation,
} from '@sectional/http'

/** The password `secret` with one iteration, so that tests are fast. */
const adminHash = `-pbkdf2:sha256-${pbkdf2Sync('secret', 'salt', 1, 32, 'sha256').toString('hex')},salt,1`
export const adminAuthorization = basic('admin', 'secret')

export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

export class MemoryNode {
  readonly clock = new ManualClock()
  readonly log = new MemoryLog()
  readonly machine = new CountingMachine(this.clock)
  readonly runtime: MemoryRuntime
  readonly configuration: MemoryConfiguration
  readonly control: MemoryControlPlane
  readonly coordinator: CoordinatorNode
  readonly api: HttpApi
  readonly replicas = new Map<string, MemoryShardReplica>()
  readonly down = new Set<string>()
  readonly databaseEvents: DatabaseEvents
  /** The events of the audit stream, whatever the options say. */
  readonly audited: AuditEvent[] = []
  readonly #commitListeners = new Set<CommitListener>()
  #port: Promise<HttpServer> | undefined

  constructor(
    options: {
      readonly nodes?: readonly string[]
      readonly http?: Partial<HttpOptions>
      readonly wrap?: (coordinator: CoordinatorNode) => CoordinatorNode
      /** Runs the functions of design documents; by default a sandbox in this process. */
      readonly sandbox?: Sandbox
      /** By default the node belongs to no cluster. */
      readonly clusterSecret?: string
      /** The node accepts no writes yet. */
      readonly refusesWrites?: boolean
    } = {},
  ) {
    const nodes = options.nodes ?? ['node1@127.0.0.1']
    this.runtime = createMemoryRuntime({ clock: this.clock, random: new SeededRandom(7), log: this.log })
    const { sandbox = this.runtime.sandbox } = options
    const runtime = { ...this.runtime, machine: this.machine, sandbox }
    this.configuration = new MemoryConfiguration({
      admins: { admin: adminHash }, chttpd_auth: { iterations: '1' },
    })
    this.control = new MemoryControlPlane(nodes, this.down)
    if (options.refusesWrites === true) this.control.writesRefused = 'the node starts'
    const coordinator = createCoordinator({
      runtime, control: this.control,
      replicas: { replica: (node, shard) =>
        this.#replica(node, shard), isConnected: node => !this.down.has(node), isCatchingUp: () => false },
    })
    this.coordinator = options.wrap?.(coordinator) ?? coordinator
    this.databaseEvents = this.#createDatabaseEvents(nodes[0]!)
    this.databaseEvents.start()
    this.api = createHttpApi({
      runtime, control: this.control, coordinator: this.coordinator, databaseEvents: this.databaseEvents,
      configuration: this.configuration,
      nodeInformation: memoryNodeInformation, clusterSecret: options.clusterSecret ?? '',
      audit: { record: event => { this.audited.push(event) } },
      options: Object.assign(this.configuration.options.values, options.http),
    })
  }

  /**
   * Sends a request as the administrator and with `Accept: application/json`, unless the headers say otherwise (an
   * empty header is not sent). A body that is not a string, bytes or a stream is sent as JSON with its content type.
   */
  async request(method: string, target: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const raw = body === undefined || typeof body === 'string' || body instanceof Uint8Array || isStream(body)
    const all: Record<string, string> = {
      host: 'node.example:5984', accept: 'application/json', authorization: adminAuthorization,
      ...(raw ? {} : { 'content-type': 'application/json' }), ...headers,
    }
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
    const response = await this.open(method, target, sent, raw ? body as string | undefined : JSON.stringify(body))
    return readAnswer(response)
  }

  /** Sends a request without additional headers, and returns its answer when it begins. */
  async open(
    method: string, target: string, headers: Record<string, string>, body?: string, signal?: AbortSignal,
  ): Promise<InjectedResponse> {
    this.#port ??= this.runtime.http.listen({ host: '127.0.0.1', port: 0 }, this.api.handler)
    return this.runtime.http.open(
      { method, target, headers, body, ...(signal && { signal }) }, (await this.#port).address.port,
    )
  }

  get(target: string, headers?: Record<string, string>): Promise<Answer> {
    return this.request('GET', target, undefined, headers)
  }
  put(target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return this.request('PUT', target, body, headers)
  }
  post(target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return this.request('POST', target, body, headers)
  }
  delete(target: string, headers?: Record<string, string>): Promise<Answer> {
    return this.request('DELETE', target, undefined, headers)
  }

  /** Advances the clock until the work is done. */
  async during<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    let settled = false
    const mark = (): void => { settled = true }
    work.then(mark, mark)
    for (let passed = 0; !settled; passed += 10) {
      if (passed > limitMs) throw new Error(`not done after ${limitMs} ms`)
      await this.clock.advance(passed === 0 ? 0 : 10)
    }
    return work
  }

  async stop(): Promise<void> {
    await this.api.stop()
    await this.databaseEvents.stop()
    await this.coordinator.stop()
  }

  #createDatabaseEvents(node: string): DatabaseEvents {
    const { control, coordinator, runtime } = this
    return new DatabaseEvents({
      runtime, control, coordinator, enabled: () => this.configuration.get('global_changes', 'update_db') !== 'false',
      replicas: () => 3,
      local: {
        shards: () => [...control.state()?.databases.values() ?? []].flatMap(({ incarnation, shards }) => shards
          .filter(shard =>
            shard.replicas.some(replica => replica.node === node)).map(({ range }) => ({ incarnation, range }))),
        replica: shard => this.#replica(node, shard),
        onCommit: listener => {
          this.#commitListeners.add(listener)
          return () => { this.#commitListeners.delete(listener) }
        },
      },
    })
  }

  #replica(node: string, shard: ShardId): ShardReplica {
    const key = `${node} ${shardKey(shard)}`
    let replica = this.replicas.get(key)
    if (replica === undefined) this.replicas.set(key, replica = new MemoryShardReplica({
      history: key,
      onCommit: (documents, designs) => {
        if (node === this.control.node) {
          for (const listener of this.#commitListeners) listener(shard, documents, designs)
        }
      },
    }))
    return replica
  }
}

export class MemoryControlPlane implements ControlPlane {
  readonly node: string
  unavailable: string | null = null
  writesRefused: string | null = null
  notReady: string | null = null
  readonly asked: unknown[] = []
  readonly #down: ReadonlySet<string>
  #state: ClusterState
  #created = 0
  readonly #listeners = new Set<(state: ClusterState) => void>()

  constructor(nodes: readonly string[], down: ReadonlySet<string>) {
    this.node = nodes[0]!
    this.#down = down
    this.#state = {
      clusterId: 'c0ffee', index: 0, databases: new Map(), settings: {},
      nodes: Object.fromEntries(
        nodes.map((name, index) => [name, { name, address: `127.0.0.1:${7000 + index}`, zone: null }]),
      ),
    }
  }

  state(): ClusterState | null { return this.#state }
  onChange(listener: (state: ClusterState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }
  unavailableReason(): string | null { return this.unavailable }
  writesRefusedReason(): string | null { return this.unavailable ?? this.writesRefused }
  notReadyReason(): string | null { return this.unavailable ?? this.writesRefused ?? this.notReady }
  connectedNodes(): readonly string[] { return Object.keys(this.#state.nodes).filter(node => !this.#down.has(node)) }
  leader(): string | null { return this.node }

  async createDatabase(name: string, { q, n, partitioned }: CreateDatabaseOptions): Promise<DatabaseRecord> {
    if (this.#state.databases.has(name)) throw new ApiError('file_exists')
    const replicas = Object.keys(this.#state.nodes).slice(0, n).map(node => ({ node, filling: false }))
    const record: DatabaseRecord = {
      name, incarnation: `${name}.${++this.#created}`, partitioned, n,
      shards: shardRanges(q).map(range => ({ range, replicas })),
      security: adminOnlySecurity, revsLimit: 1000, purgedInfosLimit: 1000, autoPurge: {},
    }
    this.#change(databases => databases.set(name, record))
    return record
  }

  async deleteDatabase(name: string): Promise<'deleted' | 'accepted'> {
    this.#change(databases => databases.delete(name))
    return 'deleted'
  }

  async setSecurity(name: string, security: DatabaseRecord['security']): Promise<void> {
    this.#update(name, { security })
  }
  async setDatabaseOption(name: string, option: Partial<DatabaseRecord>): Promise<void> { this.#update(name, option) }
  async setSetting(section: string, key: string, value: string | null): Promise<void> {
    this.#become({ ...this.#state, settings: { ...this.#state.settings, [`${section}/${key}`]: value ?? '' } })
  }
  async removeNode(): Promise<void> { throw new Error('not used') }
  async replicaDamaged(): Promise<boolean> { throw new Error('not used') }
  async replicaFilled(): Promise<void> { throw new Error('not used') }
  /** The database that only the leader knows yet. */
  late: DatabaseRecord | undefined
  async confirmAbsent(): Promise<DatabaseRecord | undefined> { return this.late }

  async ask(node: string, question: string, argument: unknown): Promise<unknown> {
    this.asked.push({ node, question, argument })
    return question === 'active-tasks' ? [{ node, type: 'indexer' }] : `answer of ${node}`
  }

  #update(name: string, change: Partial<DatabaseRecord>): void {
    this.#change(databases => databases.set(name, { ...databases.get(name)!, ...change }))
  }

  #change(change: (databases: Map<string, DatabaseRecord>) => void): void {
    const databases = new Map(this.#state.databases)
    change(databases)
    this.#become({ ...this.#state, databases: DatabaseMap.from(databases.values()) })
  }

  #become(state: ClusterState): void {
    this.#state = { ...state, index: state.index + 1 }
    for (const listener of [...this.#listeners]) listener(this.#state)
  }
}

export class MemoryConfiguration implements Configuration {
  #memory: Record<string, Record<string, string>>
  #file: Record<string, Record<string, string>>
  readonly options: LiveOptions<typeof httpDeclarations>
  /** Whether changes count as those of all nodes. */
  shared = false
  /** The options that a reload finds changed, but does not change. */
  needRestart: readonly string[] = []
  readonly #listeners = new Set<() => void>()

  constructor(sections: Record<string, Record<string, string>>) {
    this.#memory = structuredClone(sections)
    this.#file = structuredClone(sections)
    this.options = new LiveOptions(httpDeclarations, (section, key) => this.get(section, key))
  }

  sections(): Readonly<Record<string, Readonly<Record<string, string>>>> { return this.#memory }
  get(section: string, key: string): string | undefined { return this.#memory[section]?.[key] }
  isSecret(section: string, key: string): boolean {
    return section === 'jwt_keys'
      || Object.values(httpDeclarations).some(option => option.name === `${section}/${key}` && option.secret)
  }

  isLogged(section: string, key: string): boolean { return section !== 'admins' && !this.isSecret(section, key) }

  isShared(): boolean { return this.shared }

  async set(section: string, key: string, value: string, { persist }: { readonly persist: boolean }): Promise<void> {
    ;(this.#memory[section] ??= {})[key] = value
    if (persist) (this.#file[section] ??= {})[key] = value
    this.#changed()
  }

  async removable(section: string, key: string): Promise<string | undefined> { return this.#file[section]?.[key] }

  async delete(section: string, key: string, { persist }: { readonly persist: boolean }): Promise<void> {
    delete this.#memory[section]?.[key]
    if (persist) delete this.#file[section]?.[key]
    this.#changed()
  }

  async reload(): Promise<readonly string[]> {
    this.#memory = structuredClone(this.#file)
    this.#changed()
    return this.needRestart
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  #changed(): void {
    this.options.refresh()
    for (const listener of [...this.#listeners]) listener()
  }

  /** Changes a value without a request. */
  put(section: string, key: string, value: string): void {
    (this.#memory[section] ??= {})[key] = value
    this.#changed()
  }
}

export const memoryNodeInformation: NodeInformation = {
  version: '0.1.0',
  statistics: async () => ({ couchdb: { httpd: { requests: { value: 1, type: 'counter', desc: 'requests' } } } }),
  system: async () => ({ uptime: 1 }),
  prometheus: async () => 'up 1\n',
  versions: () => ({ javascript_engine: { name: 'v8', version: '13' } }),
  activeTasks: () => [{ node: 'node1@127.0.0.1', type: 'view_compaction' }],
  seeds: () => ({}),
  replicas: async () => [],
}

class CountingMachine extends MemoryMachine {
  pbkdf2Calls = 0
  pbkdf2Rounds = 0
  override pbkdf2(
    password: string, salt: string, iterations: number, keyBytes: number, digest: PasswordDigest,
  ): Promise<Uint8Array> {
    this.pbkdf2Calls++
    this.pbkdf2Rounds += iterations
    return super.pbkdf2(password, salt, iterations, keyBytes, digest)
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body as parsed JSON, or undefined when it is not JSON. */
  readonly json: any
  /** Whether the connection broke before the end of the body. */
  readonly cut: boolean
  /** Number of pieces in which the body arrived. */
  readonly chunks: number
}

async function readAnswer(response: InjectedResponse): Promise<Answer> {
  const parts: Uint8Array[] = []
  let cut = false
  try {
    for await (const chunk of response.chunks) parts.push(chunk)
  } catch (error) {
    if (!(error instanceof ResponseCutError)) throw error
    cut = true
  }
  // The handler finishes a request a moment after the client has the answer.
  await new Promise<void>(resolve => { setImmediate(resolve) })
  const text = Buffer.concat(parts).toString('utf8')
  return {
    status: response.status, headers: response.headers as Record<string, string>, text, json: asJson(text), cut,
    chunks: parts.length,
  }
}

function isStream(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
