import { ReplicaError } from '@sectional/core'
import type { ChangeRow, ShardReplica } from '@sectional/core'
import { textOf } from '../world/value-text.ts'
import { all } from './portrait.ts'
import { readCall } from './replica-contents.ts'

/** A reader of the changes and purges of one replica that holds a copy of the documents, as an index does. */
export class CopyReader {
  #history = ''
  #sequence = 0
  /** The leaves of each document. */
  readonly #copy = new Map<string, string>()

  /** Reads on, and returns a difference between the copy and the documents of the replica. */
  async contradiction(replica: ShardReplica): Promise<string | null> {
    const { history, sequence } = await replica.upkeep.replicaInfo(readCall)
    if (history !== this.#history) this.#restart()
    this.#history = history
    const from = this.#sequence
    for (const { id, leaves, purged } of await this.#read(replica)) {
      if (purged) this.#copy.delete(id)
      else this.#copy.set(id, textOf(leaves))
    }
    this.#sequence = sequence
    const documents = await all(replica.scanChanges({ ...scan, since: 0 }, readCall))
    const expected = new Map(documents.map(({ id, leaves }) => [id, textOf(leaves)]))
    const different = [...new Set([...this.#copy.keys(), ...expected.keys()])]
      .find(id => this.#copy.get(id) !== expected.get(id))
    if (different === undefined) return null
    const [found, wanted] = [this.#copy, expected].map(each => each.get(different) ?? 'nothing')
    return `a reader of all changes and purges since ${from} has ${found} as ${different}, not ${wanted}`
  }

  async #read(replica: ShardReplica): Promise<readonly ChangeRow[]> {
    const request = { ...scan, history: this.#history, purges: true }
    const context = { ...readCall, history: this.#history }
    try {
      return await all(replica.scanChanges({ ...request, since: this.#sequence }, context))
    } catch (error) {
      if (!(error instanceof ReplicaError) || error.code !== 'position_expired') throw error
      this.#restart()
      return all(replica.scanChanges({ ...request, since: 0 }, context))
    }
  }

  #restart(): void {
    this.#sequence = 0
    this.#copy.clear()
  }
}

const scan = { descending: false, body: false, locals: false }
