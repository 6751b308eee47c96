/** A node for tests of the HTTP layer: the real coordinator over replicas in memory, and doubles of everything else. */
import { pbkdf2Sync } from 'node:crypto'
import { ApiError, shardRanges, type ShardId, type ShardReplica } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import {
  adminOnlySecurity, createCoordinator, type ClusterState, type ControlPlane, type CoordinatorNode, type CreateDatabaseOptions, type DatabaseRecord,
} from '@sectional/cluster'
import { ManualClock, SeededRandom, type Log, type LogFields, type Machine, type Metrics, type Runtime } from '@sectional/runtime'
import { createHttpApi, defaultHttpOptions, type Configuration, type HttpApi, type HttpOptions, type NodeInformation } from '@sectional/http'
import { inject, type Answer, type Sent } from './memory-exchange.ts'

/** Password `secret` with one iteration, so that tests are quick. */
const adminHash = `-pbkdf2:sha256-${pbkdf2Sync('secret', 'salt', 1, 32, 'sha256').toString('hex')},salt,1`
export const adminAuthorization = basic('admin', 'secret')

export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

export class MemoryNode {
  readonly clock = new ManualClock()
  readonly log = new MemoryLog()
  readonly metrics = new MemoryMetrics()
  readonly machine = new MemoryMachine()
  readonly configuration: MemoryConfiguration
  readonly control: MemoryControlPlane
  readonly coordinator: CoordinatorNode
  readonly api: HttpApi
  readonly replicas = new Map<string, MemoryShardReplica>()
  readonly down = new Set<string>()

  constructor(options: { readonly nodes?: readonly string[]; readonly http?: Partial<HttpOptions>; readonly wrap?: (coordinator: CoordinatorNode) => CoordinatorNode } = {}) {
    const nodes = options.nodes ?? ['node1@127.0.0.1']
    const runtime = {
      clock: this.clock, random: new SeededRandom(7), log: this.log, metrics: this.metrics, machine: this.machine,
    } as unknown as Runtime
    this.configuration = new MemoryConfiguration({ admins: { admin: adminHash } })
    this.control = new MemoryControlPlane(nodes, this.down)
    const coordinator = createCoordinator({
      runtime, control: this.control,
      replicas: { replica: (node, shard) => this.#replica(node, shard), isConnected: node => !this.down.has(node) },
    })
    this.coordinator = options.wrap?.(coordinator) ?? coordinator
    this.api = createHttpApi({
      runtime, control: this.control, coordinator: this.coordinator, configuration: this.configuration,
      nodeInformation: memoryNodeInformation, options: { ...defaultHttpOptions, ...options.http },
    })
  }

  /** As the administrator and with `Accept: application/json`, unless the headers say otherwise (empty: not sent). */
  request(method: string, target: string, body?: unknown, headers: Record<string, string> = {}, sent: Sent = {}): Promise<Answer> {
    const all = { accept: 'application/json', authorization: adminAuthorization, ...headers }
    return inject(this.api.handler, method, target, {
      ...sent, body, headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')),
    })
  }

  get(target: string, headers?: Record<string, string>): Promise<Answer> { return this.request('GET', target, undefined, headers) }
  put(target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> { return this.request('PUT', target, body, headers) }
  post(target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> { return this.request('POST', target, body, headers) }
  delete(target: string, headers?: Record<string, string>): Promise<Answer> { return this.request('DELETE', target, undefined, headers) }

  async stop(): Promise<void> {
    await this.api.stop()
    await this.coordinator.stop()
  }

  #replica(node: string, shard: ShardId): ShardReplica {
    const key = `${node} ${shard.incarnation} ${shard.range.begin}`
    let replica = this.replicas.get(key)
    if (replica === undefined) this.replicas.set(key, replica = new MemoryShardReplica({ history: key }))
    return replica
  }
}

export class MemoryControlPlane implements ControlPlane {
  readonly node: string
  unavailable: string | null = null
  readonly asked: unknown[] = []
  readonly #down: ReadonlySet<string>
  #state: ClusterState
  #created = 0

  constructor(nodes: readonly string[], down: ReadonlySet<string>) {
    this.node = nodes[0]!
    this.#down = down
    this.#state = {
      clusterId: 'c0ffee', index: 0, databases: new Map(), settings: {},
      nodes: Object.fromEntries(nodes.map((name, index) => [name, { name, address: `127.0.0.1:${7000 + index}`, zone: null }])),
    }
  }

  state(): ClusterState | null { return this.#state }
  onChange(): () => void { return () => {} }
  unavailableReason(): string | null { return this.unavailable }
  connectedNodes(): readonly string[] { return Object.keys(this.#state.nodes).filter(node => !this.#down.has(node)) }
  leader(): string | null { return this.node }

  async createDatabase(name: string, { q, n, partitioned }: CreateDatabaseOptions): Promise<DatabaseRecord> {
    if (this.#state.databases.has(name)) throw new ApiError('file_exists')
    const replicas = Object.keys(this.#state.nodes).slice(0, n).map(node => ({ node, filling: false }))
    const record: DatabaseRecord = {
      name, incarnation: `${name}.${++this.#created}`, partitioned, n, shards: shardRanges(q).map(range => ({ range, replicas })),
      security: adminOnlySecurity, revsLimit: 1000, purgedInfosLimit: 1000, autoPurge: {},
    }
    this.#change(databases => databases.set(name, record))
    return record
  }

  async deleteDatabase(name: string): Promise<'deleted' | 'accepted'> {
    this.#change(databases => databases.delete(name))
    return 'deleted'
  }

  async setSecurity(name: string, security: DatabaseRecord['security']): Promise<void> { this.#update(name, { security }) }
  async setDatabaseOption(name: string, option: Partial<DatabaseRecord>): Promise<void> { this.#update(name, option) }
  async setSetting(): Promise<void> { throw new Error('not used') }
  async removeNode(): Promise<void> { throw new Error('not used') }
  async replicaFilled(): Promise<void> { throw new Error('not used') }
  /** What the leader would know better. */
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
    this.#state = { ...this.#state, index: this.#state.index + 1, databases }
  }
}

export class MemoryConfiguration implements Configuration {
  #memory: Record<string, Record<string, string>>
  #file: Record<string, Record<string, string>>

  constructor(sections: Record<string, Record<string, string>>) {
    this.#memory = structuredClone(sections)
    this.#file = structuredClone(sections)
  }

  sections(): Readonly<Record<string, Readonly<Record<string, string>>>> { return this.#memory }
  get(section: string, key: string): string | undefined { return this.#memory[section]?.[key] }

  async set(section: string, key: string, value: string, { persist }: { readonly persist: boolean }): Promise<void> {
    ;(this.#memory[section] ??= {})[key] = value
    if (persist) (this.#file[section] ??= {})[key] = value
  }

  async delete(section: string, key: string, { persist }: { readonly persist: boolean }): Promise<void> {
    delete this.#memory[section]?.[key]
    if (persist) delete this.#file[section]?.[key]
  }

  async reload(): Promise<void> { this.#memory = structuredClone(this.#file) }

  /** For tests: without going through HTTP. */
  put(section: string, key: string, value: string): void { (this.#memory[section] ??= {})[key] = value }
}

const memoryNodeInformation: NodeInformation = {
  version: '0.1.0',
  statistics: async () => ({ couchdb: { httpd: { requests: { value: 1, type: 'counter', desc: 'requests' } } } }),
  system: async () => ({ uptime: 1 }),
  prometheus: async () => 'up 1\n',
  versions: () => ({ javascript_engine: { name: 'v8', version: '13' } }),
  activeTasks: () => [{ node: 'node1@127.0.0.1', type: 'view_compaction' }],
  seeds: () => ({}),
  replicas: async () => [],
}

export class MemoryLog implements Log {
  readonly lines: { readonly level: string; readonly fields: LogFields; readonly message: string }[] = []
  debug(fields: LogFields, message: string): void { this.lines.push({ level: 'debug', fields, message }) }
  info(fields: LogFields, message: string): void { this.lines.push({ level: 'info', fields, message }) }
  warn(fields: LogFields, message: string): void { this.lines.push({ level: 'warn', fields, message }) }
  error(fields: LogFields, message: string): void { this.lines.push({ level: 'error', fields, message }) }
  child(): Log { return this }
}

export class MemoryMetrics implements Metrics {
  readonly values = new Map<string, number>()
  readonly #collects: (() => void | Promise<void>)[] = []
  counter(name: string): { add(value?: number, labels?: Readonly<Record<string, string>>): void } {
    return { add: (value = 1, labels = {}) => this.#add(name, value, labels) }
  }
  gauge(name: string): { set(value: number, labels?: Readonly<Record<string, string>>): void; add(value: number): void } {
    return { set: (value, labels = {}) => { this.values.set(this.#key(name, labels), value) }, add: value => this.#add(name, value, {}) }
  }
  histogram(name: string): { observe(value: number, labels?: Readonly<Record<string, string>>): void } {
    return { observe: (_value, labels = {}) => this.#add(`${name}_count`, 1, labels) }
  }
  onCollect(collect: () => void | Promise<void>): void { this.#collects.push(collect) }
  async render(): Promise<string> { return '' }
  async samples(): Promise<[]> { return [] }
  async collect(): Promise<ReadonlyMap<string, number>> {
    for (const collect of this.#collects) await collect()
    return this.values
  }
  #add(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    const key = this.#key(name, labels)
    this.values.set(key, (this.values.get(key) ?? 0) + value)
  }
  #key(name: string, labels: Readonly<Record<string, string>>): string { return `${name} ${Object.values(labels).join(' ')}`.trim() }
}

export class MemoryMachine implements Machine {
  pbkdf2Calls = 0
  uptime(): number { return 1 }
  memory(): { residentBytes: number; heapUsedBytes: number; heapTotalBytes: number; externalBytes: number } {
    return { residentBytes: 0, heapUsedBytes: 0, heapTotalBytes: 0, externalBytes: 0 }
  }
  openFiles(): number | null { return null }
  eventLoopDelay(): { mean: number; p99: number } { return { mean: 0, p99: 0 } }
  versions(): Readonly<Record<string, string>> { return {} }
  async pbkdf2(password: string, salt: string, iterations: number, keyBytes: number, digest: string): Promise<Uint8Array> {
    this.pbkdf2Calls++
    return pbkdf2Sync(password, salt, iterations, keyBytes, digest)
  }
}
