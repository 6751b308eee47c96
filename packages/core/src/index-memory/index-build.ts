import type { IndexDefinition } from '../contracts/index-replica.ts'
import type { ChangeReplica, ReplicaCheckpoint } from '../contracts/shard-replica.ts'
import { newestPosition, ReplicaError } from '../contracts/shard-replica.ts'
import { IndexContent } from './index-content.ts'
import type { Indexer } from './indexer.ts'

export interface BuildParts {
  readonly replica: ChangeReplica
  readonly indexer: Indexer
  /** The timeout of each call on the replica, in milliseconds. */
  readonly callTimeoutMs: number
}

/** Called when a build has reached a position or begun anew, and with the error with which it ended. */
export type BuildListener = (failure?: unknown) => void

/** One index and the build that fills it. At most one build of an index runs at a time. */
export class IndexBuild {
  readonly definition: IndexDefinition
  readonly listeners = new Set<BuildListener>()
  content: IndexContent
  building = false
  readonly #parts: BuildParts
  readonly #ended = new AbortController()
  /** The sequence that the build must reach, in the history of `content`. */
  #through = 0

  constructor(definition: IndexDefinition, history: string, parts: BuildParts) {
    this.definition = definition
    this.#parts = parts
    this.content = new IndexContent(history)
  }

  /** Begins a build up to that position, or extends the one that runs. */
  request({ history, sequence }: ReplicaCheckpoint): void {
    this.#adopt(history)
    this.#through = Math.max(this.#through, sequence)
    if (!this.building && this.content.sequence < this.#through) void this.#build()
  }

  /** Ends the build. Calls that wait for it fail. */
  end(reason: ReplicaError): void {
    this.#ended.abort()
    this.#tell(reason)
  }

  async #build(): Promise<void> {
    this.building = true
    try {
      while (this.content.sequence < this.#through) await this.#readChanges()
      this.building = false
    } catch (error) {
      this.building = false
      this.#tell(error)
    }
  }

  /** Reads the changes to their end once, or begins anew when the replica does not know the index's position. */
  async #readChanges(): Promise<void> {
    const { replica, indexer, callTimeoutMs: timeoutMs } = this.#parts
    const { signal } = this.#ended
    const now = await newestPosition(replica, { timeoutMs, signal })
    this.#adopt(now.history)
    const { content } = this
    const { history, readSequence: since } = content
    const request = { since, descending: false, body: true, locals: false, purges: true }
    try {
      for await (const page of replica.scanChanges(request, { timeoutMs, signal, history })) {
        for (const row of page) content.apply(row, () => indexer.map(this.definition, row))
      }
      content.complete(now.sequence)
      this.#tell()
    } catch (error) {
      const code = error instanceof ReplicaError ? error.code : undefined
      if (code === 'position_expired') this.content = new IndexContent(history)
      else if (code !== 'other_history') throw error
    }
  }

  /** Begins anew when the replica has another history than the content. */
  #adopt(history: string): void {
    if (this.content.history === history) return
    this.content = new IndexContent(history)
    this.#through = 0
    this.#tell()
  }

  #tell(failure?: unknown): void {
    for (const listener of [...this.listeners]) listener(failure)
  }
}
