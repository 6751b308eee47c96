/** A writer that continues through crashes and records which writes were acknowledged. */
import type { TestCluster } from './test-cluster.ts'

export class Writer {
  /** Revisions of acknowledged writes by id (201, or 202: durable on at least one replica). */
  readonly acknowledged = new Map<string, string>()
  readonly #cluster: TestCluster
  readonly #database: string
  #stopped = false
  #next = 0

  constructor(cluster: TestCluster, database: string) {
    this.#cluster = cluster
    this.#database = database
  }

  /** Writes new documents one after the other, to the nodes in turn, until `stop`. */
  async run(label: string): Promise<void> {
    const count = this.#cluster.nodes.length
    while (!this.#stopped) {
      const id = `${label} ${this.#next++}`
      const number = 1 + this.#next % count
      try {
        const { status, body } = await this.#cluster.write(number, this.#database, id, { id, text: 'x'.repeat(200) })
        if (status === 201) this.acknowledged.set(id, body.rev)
      } catch {
        // The node crashed during the request: the document may exist, but was not acknowledged.
      }
      if (!this.#cluster.node(number).running) await new Promise(resolve => setImmediate(resolve))
    }
  }

  stop(): void {
    this.#stopped = true
  }
}
