/**
 * A cluster of real processes on this machine. Its vocabulary has ten words: start, stop, crash, pause, continue,
 * partition, heal, write, read, converge.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterNetwork } from './cluster-network.ts'
import type { Answer } from './http-client.ts'
import { ProxyNetwork } from './proxy-network.ts'
import { TestNode } from './test-node.ts'

const pollMs = 50
const readyMsMax = 30_000
/** A failed anti-entropy pass is repeated by the periodic pass, after up to 75 s. */
const convergeMsMax = 60_000

export interface TestClusterOptions {
  readonly nodes: number
  /** The first `seeds` nodes are the seed list of every node; default: all. */
  readonly seeds?: number
  readonly settings?: Readonly<Record<string, string>>
  /** Additional environment variables of each process. */
  readonly environment?: Readonly<Record<string, string>>
  /** Maximum number of file descriptors of each process. */
  readonly descriptorsMax?: number
  /** The nodes that `TestCluster.start` starts; default: all. */
  readonly running?: readonly number[]
  /** Additional settings of single nodes, by node number. */
  readonly nodeSettings?: Readonly<Record<number, Readonly<Record<string, string>>>>
  /** Default: loopback with proxies. It is closed with the cluster. */
  readonly network?: ClusterNetwork
  /** Whether the data of each node has a disk of its own, which can be made full. It needs root on Linux. */
  readonly smallDisks?: boolean
}

export class TestCluster {
  readonly nodes: readonly TestNode[]
  readonly #folder: string
  readonly #network: ClusterNetwork
  /** Group of each node, by node number, during a partition. */
  #groups: ReadonlyMap<number, number> | undefined
  /** One-way paths that are blocked, such as `1 2`. */
  #cuts: ReadonlySet<string> = new Set()

  private constructor(options: TestClusterOptions, network: ClusterNetwork) {
    this.#folder = mkdtempSync(join(tmpdir(), 'sectional-cluster-'))
    this.#network = network
    const secret = 'a secret that only this test knows, long enough'
    const seeds = network.places.slice(0, options.seeds).map(({ address, advertisedPort }) =>
      `${address}:${advertisedPort}`)
    this.nodes = network.places.map((place, index) => {
      const number = index + 1
      return new TestNode({
        number, folder: join(this.#folder, `node${number}`), place, seeds, secret,
        settings: { ...options.settings, ...options.nodeSettings?.[number] },
        environment: options.environment, descriptorsMax: options.descriptorsMax, smallDisk: options.smallDisks,
      })
    })
  }

  /** Creates the folders and the network of a cluster without starting its processes. */
  static async prepare(options: TestClusterOptions): Promise<TestCluster> {
    const network = options.network ?? await ProxyNetwork.create(options.nodes)
    const cluster = new TestCluster(options, network)
    await network.open(() => new Map(cluster.nodes.flatMap(({ number, processId }) => (
      processId === undefined ? [] : [[number, processId]]))))
    return cluster
  }

  /** Starts a cluster, and waits until all started nodes answer. */
  static async start(options: TestClusterOptions): Promise<TestCluster> {
    const cluster = await TestCluster.prepare(options)
    for (const node of cluster.nodes) if (options.running?.includes(node.number) ?? true) node.start()
    try {
      await cluster.ready()
    } catch (error) {
      await cluster.close()
      throw error
    }
    return cluster
  }

  node(number: number): TestNode {
    return this.nodes[number - 1]!
  }

  /** Waits until the given nodes (default: those that run) answer `/_up` with 200. */
  async ready(
    numbers: readonly number[] = this.nodes.filter(node => node.running).map(node => node.number),
  ): Promise<void> {
    await Promise.all(numbers.map(number => eventually(`node${number} to be up`, readyMsMax, async () => {
      const node = this.node(number)
      if (!node.running) throw new Error(`it has ended:\n${node.log().split('\n').slice(-5).join('\n')}`)
      const { status, body } = await node.http.send('GET', '/_up', { timeoutMs: 2000 })
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    })))
  }

  /** Blocks the links between nodes of different groups from now on. */
  partition(...groups: readonly (readonly number[])[]): void {
    this.#groups = new Map(groups.flatMap((group, index) => group.map(number => [number, index] as const)))
    this.#update()
  }

  /**
   * Blocks these one-way paths between nodes from now on, in place of those that were blocked before.
   *
   * @param paths numbers of the nodes: bytes of the first one do not reach the second one
   */
  cut(paths: readonly (readonly [number, number])[]): void {
    this.#cuts = new Set(paths.map(([from, to]) => `${from} ${to}`))
    this.#update()
  }

  /** Opens all links. */
  heal(): void {
    this.#groups = undefined
    this.#cuts = new Set()
    this.#update()
  }

  #update(): void {
    this.#network.update((from, to) => this.#mayPass(from, to))
  }

  #mayPass(from: number, to: number): boolean {
    return !this.#cuts.has(`${from} ${to}`)
      && (this.#groups === undefined || this.#groups.get(from) === this.#groups.get(to))
  }

  /** Sends PUT through one node and returns the answer. */
  write(number: number, database: string, id: string, document: object): Promise<Answer> {
    return this.node(number).http.send('PUT', `/${database}/${encodeURIComponent(id)}`, { json: document })
  }

  read(number: number, database: string, id: string, query = ''): Promise<Answer> {
    return this.node(number).http.send('GET', `/${database}/${encodeURIComponent(id)}${query}`)
  }

  /**
   * Waits until all replicas of every shard have the same documents and revision trees. Resolves with their reports.
   *
   * @param msMax milliseconds after which it rejects
   */
  async converge(database: string, msMax = convergeMsMax): Promise<readonly ReplicaReport[]> {
    return eventually(`the replicas of ${database} to be equal`, msMax, async () => {
      const reports = (await Promise.all(this.nodes.map(node => this.replicas(node.number, database)))).flat()
      const byRange = Map.groupBy(reports, report => report.range)
      for (const [range, replicas] of byRange) {
        const contents = new Set(replicas.map(({ document_count, deleted_count, digest }) =>
          JSON.stringify([document_count, deleted_count, digest])))
        if (contents.size > 1) throw new Error(`${range}: ${[...contents].join(' / ')}`)
      }
      return reports
    })
  }

  /** Returns the reports of one node's replicas of a database. */
  async replicas(number: number, database: string): Promise<readonly ReplicaReport[]> {
    const { status, body } = await this.node(number).http.send('GET', `/_node/_local/_replicas/${database}`)
    if (status !== 200) throw new Error(`_replicas of node${number}: ${status} ${JSON.stringify(body)}`)
    return body.replicas
  }

  /** Ends every process and removes every file. Prints the logs of the nodes when `showLogs` is true. */
  async close(showLogs = false): Promise<void> {
    for (const node of this.nodes) {
      node.continue()
      await node.crash()
      node.http.close()
      if (showLogs) console.error(`--- ${node.name}\n${node.log().split('\n').slice(-20).join('\n')}`)
    }
    await this.#network.close()
    for (const node of this.nodes) node.disk?.unmount()
    rmSync(this.#folder, { recursive: true })
  }
}

export interface ReplicaReport {
  readonly range: string
  readonly node: string
  readonly history: string
  readonly sequence: number
  readonly document_count: number
  readonly deleted_count: number
  /** The replica may lack edits that were made while its node was away. */
  readonly catching_up: boolean
  /** Digest of the leaves of all documents. */
  readonly digest: string
}

/** Polls until the check passes. Returns its result, or fails with the last reason. */
export async function eventually<Result>(what: string, msMax: number, check: () => Promise<Result>): Promise<Result> {
  const startedAt = performance.now()
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() - startedAt > msMax) {
        throw new Error(`waited ${msMax / 1000} s for ${what}: ${(error as Error).message}`, { cause: error })
      }
    }
    await pause(pollMs)
  }
}
