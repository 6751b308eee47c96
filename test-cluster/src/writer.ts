/** A writer that goes on through crashes and remembers what was acknowledged. */
import type { TestCluster } from './test-cluster.ts'

export class Writer {
  /** id -> revision, as acknowledged with 201 (or 202: durable on at least one replica). */
  readonly acknowledged = new Map<string, string>()
  readonly #cluster: TestCluster
  readonly #database: string
  #stopped = false
  #next = 0

  constructor(cluster: TestCluster, database: string) {
    this.#cluster = cluster
    this.#database = database
  }

  /** Writes new documents one after the other, round the nodes, until `stop`. */
  async run(label: string): Promise<void> {
    const count = this.#cluster.nodes.length
    while (!this.#stopped) {
      const id = `${label} ${this.#next++}`
      const number = 1 + this.#next % count
      try {
        const { status, body } = await this.#cluster.write(number, this.#database, id, { id, text: 'x'.repeat(200) })
        if (status === 201) this.acknowledged.set(id, body.rev)
      } catch {
        // The node died with the request in flight: whether the document exists is open, and nobody was told it does.
      }
      if (!this.#cluster.node(number).running) await new Promise(resolve => setImmediate(resolve))
    }
  }

  stop(): void {
    this.#stopped = true
  }
}
