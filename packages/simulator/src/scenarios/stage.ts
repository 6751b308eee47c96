/** The vocabulary of scenarios, on top of a runner. */
import assert from 'node:assert/strict'
import type { ScenarioAnswer, ScenarioCluster } from './scenario-cluster.ts'

const pollMs = 100
/** A failed anti-entropy pass is repeated by the periodic pass, after up to 75 s. */
const eventuallyMsMax = 150_000
const readyMsMax = 60_000
/** docs/architecture.md#two-planes */
const votersMax = 5

export interface ReplicaReport {
  readonly range: string
  readonly node: string
  readonly document_count: number
  readonly deleted_count: number
  readonly digest: string
  readonly filling: boolean
}

export class Stage {
  /** Name of this scenario's database. A second database has the same name followed by `-2`. */
  readonly database: string
  readonly cluster: ScenarioCluster

  constructor(cluster: ScenarioCluster, database: string) {
    this.cluster = cluster
    this.database = database
  }

  // The ten words of the vocabulary

  /** Starts nodes and waits until they serve requests. */
  async start(...nodes: number[]): Promise<void> {
    await Promise.all(nodes.map(node => this.cluster.start(node)))
    await this.ready(...nodes)
  }

  async stop(...nodes: number[]): Promise<void> {
    await Promise.all(nodes.map(node => this.cluster.stop(node)))
  }

  async crash(...nodes: number[]): Promise<void> {
    await Promise.all(nodes.map(node => this.cluster.crash(node)))
  }

  pause(node: number): void {
    this.cluster.pause(node)
  }

  continue(node: number): void {
    this.cluster.continue(node)
  }

  partition(...groups: readonly (readonly number[])[]): void {
    this.cluster.partition(...groups)
  }

  heal(): void {
    this.cluster.heal()
  }

  write(node: number, id: string, document: object, query = ''): Promise<ScenarioAnswer> {
    return this.cluster.send(node, 'PUT', `${this.#path(id)}${query}`, document)
  }

  read(node: number, id: string, query = ''): Promise<ScenarioAnswer> {
    return this.cluster.send(node, 'GET', `${this.#path(id)}${query}`)
  }

  /** Waits until all replicas of every shard on the running nodes have the same documents and revision trees. */
  converge(database = this.database): Promise<readonly ReplicaReport[]> {
    return this.eventually(`the replicas of ${database} to be equal`, async () => {
      const reports = (await Promise.all(this.cluster.running.map(node => this.replicas(node, database)))).flat()
      for (const [range, replicas] of Map.groupBy(reports, report => report.range)) {
        const contents = new Set(replicas.map(({ document_count, deleted_count, digest }) =>
          JSON.stringify([document_count, deleted_count, digest])))
        assert(contents.size === 1, `${range}: ${[...contents].join(' / ')}`)
      }
      return reports
    })
  }

  // Operations that the ten words are composed of

  /**
   * Waits until every running node has a link with every other, and all of them vote on the metadata (at most five).
   */
  async linked(): Promise<void> {
    const { running } = this.cluster
    await this.eventually('links and voters', async () => {
      for (const node of running) {
        const { body } = await this.send(node, 'GET', '/_membership')
        assert(body.all_nodes.length >= running.length, `node ${node} reaches ${body.all_nodes.join(', ')}`)
        assert(
          (await this.metric(node, 'sectional_consensus_voters')) >= Math.min(running.length, votersMax),
          `node ${node} knows too few voters`,
        )
      }
    })
  }

  async ready(...nodes: number[]): Promise<void> {
    await Promise.all(nodes.map(node =>
      this.eventually(`node ${node} to be up`, () => this.expect(200, this.send(node, 'GET', '/_up')), readyMsMax)))
  }

  send(node: number, method: string, path: string, json?: unknown): Promise<ScenarioAnswer> {
    return this.cluster.send(node, method, path, json)
  }

  /** Creates the scenario's database. */
  async create(query = '?q=2', node = 1): Promise<void> {
    await this.expect(201, this.send(node, 'PUT', `/${this.database}${query}`))
  }

  remove(node: number, id: string, revision: string): Promise<ScenarioAnswer> {
    return this.cluster.send(node, 'DELETE', `${this.#path(id)}?rev=${revision}`)
  }

  /** Writes many new documents `{prefix} 0`, `{prefix} 1` ... in one request. Every row must be written. */
  async fill(node: number, prefix: string, count: number): Promise<readonly string[]> {
    const ids = Array.from({ length: count }, (_, index) => `${prefix} ${index}`)
    const { body } = await this.send(node, 'POST', `/${this.database}/_bulk_docs`, {
      docs: ids.map(_id => ({ _id, text: 'x'.repeat(100) })),
    })
    for (const row of body) assert(row.rev !== undefined, `${prefix}: ${JSON.stringify(row)}`)
    return ids
  }

  /** Asserts that the answer has the status (or one of the statuses), and returns the answer. */
  async expect(
    status: number | readonly number[], pending: ScenarioAnswer | Promise<ScenarioAnswer>,
  ): Promise<ScenarioAnswer> {
    const answer = await pending
    assert(
      [status].flat().includes(answer.status),
      `${answer.status} instead of ${[status].flat().join(' or ')}: ${JSON.stringify(answer.body)}`,
    )
    return answer
  }

  /**
   * Asserts that every running node returns the document with these members. Reads use r = 1, so that each replica is
   * read through some node.
   */
  async everywhere(id: string, members: object): Promise<void> {
    for (const node of this.cluster.running) {
      const { body } = await this.expect(200, this.read(node, id, '?r=1'))
      for (const [name, value] of Object.entries(members)) assert.deepEqual(body[name], value, `${id} on node ${node}`)
    }
  }

  async nowhere(id: string): Promise<void> {
    for (const node of this.cluster.running) await this.expect(404, this.read(node, id))
  }

  /** Returns every leaf of the document, winner first. */
  async leaves(node: number, id: string): Promise<readonly string[]> {
    const { body } = await this.expect(200, this.read(node, id, '?conflicts=true&deleted_conflicts=true'))
    return [body._rev, ...body._conflicts ?? [], ...body._deleted_conflicts ?? []]
  }

  /** Returns the nodes of the document's replicas in the order in which they are asked to decide an edit. */
  async deciders(id: string): Promise<readonly number[]> {
    const { body } = await this.expect(200, this.send(1, 'GET', `/${this.database}/_shards/${encodeURIComponent(id)}`))
    return body.nodes.map((name: string) => Number(/^node(\d+)@/.exec(name)![1]))
  }

  /** Returns the node that leads the metadata log. */
  leader(): Promise<number> {
    return this.eventually('a leader', async () => {
      for (const node of this.cluster.running) {
        if (await this.metric(node, 'sectional_consensus_leader') === 1) return node
      }
      throw new Error('nobody leads')
    })
  }

  async metric(node: number, name: string): Promise<number> {
    const { body } = await this.expect(200, this.send(node, 'GET', '/_node/_local/_prometheus'))
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(body)?.[1])
  }

  async replicas(node: number, database = this.database): Promise<readonly ReplicaReport[]> {
    const { body } = await this.expect(200, this.send(node, 'GET', `/_node/_local/_replicas/${database}`))
    return body.replicas
  }

  /** Polls until the check passes. Returns its result, or fails with the last reason. */
  async eventually<Result>(what: string, check: () => Promise<Result>, msMax = eventuallyMsMax): Promise<Result> {
    for (let waitedMs = 0; ; waitedMs += pollMs) {
      try {
        return await check()
      } catch (error) {
        if (waitedMs >= msMax) {
          throw new Error(`waited ${msMax / 1000} s for ${what}: ${(error as Error).message}`, { cause: error })
        }
      }
      await this.cluster.wait(pollMs)
    }
  }

  others(...nodes: readonly number[]): readonly number[] {
    return Array.from({ length: this.cluster.layout.nodes }, (_, index) => index + 1)
      .filter(node => !nodes.includes(node))
  }

  #path(id: string): string {
    const name = id.startsWith('_local/') ? `_local/${encodeURIComponent(id.slice(7))}` : encodeURIComponent(id)
    return `/${this.database}/${name}`
  }
}
