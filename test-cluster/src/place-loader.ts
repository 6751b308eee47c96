/** Loads the places with the nano client through all nodes, like an application that retries on another node. */
import nano from 'nano'
import { setTimeout as pause } from 'node:timers/promises'
import type { TestCluster } from './test-cluster.ts'
import type { Place } from './places.ts'

const batchSize = 500
const parallelBatches = 4
/** One batch in this many is written with single PUTs. */
const singlesEvery = 25
const attemptsMax = 100
const retryMs = 100

export class PlaceLoader {
  /** Revisions of all acknowledged writes, by id. */
  readonly acknowledged = new Map<string, string>()
  /** Ids of documents that were written by a request whose response was lost: the retry found the document. */
  readonly foundWritten = new Set<string>()
  readonly #clients: readonly nano.DocumentScope<Place>[]

  constructor(cluster: TestCluster, database: string) {
    this.#clients = cluster.nodes.map(node => nano(node.http.url).use<Place>(database))
  }

  async load(places: readonly Place[]): Promise<void> {
    const batches = Array.from(
      { length: Math.ceil(places.length / batchSize) },
      (_, index) => places.slice(index * batchSize, (index + 1) * batchSize),
    )
    let next = 0
    const worker = async () => {
      while (next < batches.length) {
        const index = next++
        if (index % singlesEvery === singlesEvery - 1) await this.#loadSingly(batches[index]!, index)
        else await this.#loadBatch(batches[index]!, index)
      }
    }
    await Promise.all(Array.from({ length: parallelBatches }, worker))
  }

  async #loadBatch(docs: readonly Place[], index: number): Promise<void> {
    let missing = docs
    await this.#attempt(index, async client => {
      const rows = await client.bulk({ docs: [...missing] })
      for (const row of rows) this.#note(row.id, row)
      missing = missing.filter(doc => !this.#isWritten(doc._id))
      if (missing.length > 0) {
        throw new Error(
          `${missing.length} of ${docs.length} were not written: ${JSON.stringify(rows.find(row => row.error))}`,
        )
      }
    })
  }

  async #loadSingly(docs: readonly Place[], index: number): Promise<void> {
    for (const [offset, doc] of docs.entries()) {
      await this.#attempt(index + offset, async client => {
        const answer = await client.insert(doc).catch((error: { statusCode?: number; error?: string }) => {
          if (error.statusCode === 409) return { id: doc._id, rev: '', error: 'conflict' }
          throw error
        })
        this.#note(doc._id, answer)
      })
    }
  }

  /** Tries the nodes in turn until one succeeds. */
  async #attempt(index: number, run: (client: nano.DocumentScope<Place>) => Promise<void>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await run(this.#clients[(index + attempt) % this.#clients.length]!)
      } catch (error) {
        if (attempt >= attemptsMax) throw error
        await pause(retryMs)
      }
    }
  }

  #note(id: string, row: { readonly rev?: string; readonly error?: string }): void {
    if (row.rev) this.acknowledged.set(id, row.rev)
    else if (row.error === 'conflict') this.foundWritten.add(id)
  }

  #isWritten(id: string): boolean {
    return this.acknowledged.has(id) || this.foundWritten.has(id)
  }
}
