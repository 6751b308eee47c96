import { type IndexDefinition, indexId, ReplicaError } from '@sectional/core'
import type { Clock, Counter, Log, Metrics } from '@sectional/runtime'

/** Milliseconds between two lines of one kind about one index. */
const intervalMs = 60_000
/** Number of indexes that are counted. Beyond it, counting begins anew. */
const indexesMax = 10_000
/** How much of a map function a line shows, because the same index may belong to several views. */
const shownLength = 200
/** How much of an error a line shows: a function may put a whole document into what it throws. */
const errorLengthMax = 500

/** The failures of one index since the process has started. */
interface IndexFailures {
  documents: number
  builds: number
  /** Monotonic times of the last line about documents and about builds. */
  documentsWritten: number
  buildsWritten: number
}

/**
 * Writes failures of map functions and of builds to the log of the node: each kind at once and then at most once a
 * minute for each index, with the number of failures since the process has started.
 */
export class IndexReports {
  readonly #log: Log
  readonly #clock: Clock
  readonly #failedBuilds: Counter
  readonly #failures = new Map<string, IndexFailures>()

  constructor({ log, clock, metrics }: { readonly log: Log; readonly clock: Clock; readonly metrics: Metrics }) {
    this.#log = log
    this.#clock = clock
    this.#failedBuilds = metrics.counter('sectional_index_builds_failed_total',
      'Builds of indexes that ended with an error, by its code.', ['reason'])
  }

  /**
   * @param shard names the replica in the log
   * @param example one of the documents, with the error, its line and column
   * @param count number of documents on which the map function failed
   */
  documentsFailed(
    shard: string, definition: IndexDefinition, example: { readonly id: string; readonly error: string },
    count: number,
  ): void {
    const failures = this.#of(shard, definition)
    failures.documents += count
    const now = this.#clock.monotonic()
    if (now - failures.documentsWritten < intervalMs) return
    failures.documentsWritten = now
    this.#log.warn({
      ...described(shard, definition), document: example.id, error: example.error.slice(0, errorLengthMax),
      documents: failures.documents,
    }, 'A map function failed on documents, which have no rows in its index')
  }

  /** Ignores builds that were ended because nobody needs them, also because their replica was dropped. */
  buildFailed(shard: string, definition: IndexDefinition, { code, message }: ReplicaError): void {
    if (code === 'closed' || code === 'cancelled' || code === 'not_hosted') return
    this.#failedBuilds.add(1, { reason: code })
    const failures = this.#of(shard, definition)
    failures.builds++
    const now = this.#clock.monotonic()
    if (now - failures.buildsWritten < intervalMs) return
    failures.buildsWritten = now
    this.#log.warn({
      ...described(shard, definition), code, error: message.slice(0, errorLengthMax), builds: failures.builds,
    }, 'The build of an index failed; the next query tries it again')
  }

  #of(shard: string, definition: IndexDefinition): IndexFailures {
    const key = `${shard} ${indexId(definition)}`
    const known = this.#failures.get(key)
    if (known !== undefined) return known
    if (this.#failures.size >= indexesMax) this.#failures.clear()
    const made = { documents: 0, builds: 0, documentsWritten: -Infinity, buildsWritten: -Infinity }
    this.#failures.set(key, made)
    return made
  }
}

function described(shard: string, definition: IndexDefinition): object {
  return { shard, index: indexId(definition), map: definition.map.slice(0, shownLength) }
}
