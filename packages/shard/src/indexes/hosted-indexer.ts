import { type ChangeRow, type IndexDefinition, ReplicaError } from '@sectional/core'
import type { Metrics } from '@sectional/runtime'
import type { Indexer, MappedDocument } from './indexer.ts'

/**
 * Returns an indexer that counts the documents that it maps.
 *
 * @param onFailed receives one of the documents of a call on which the map function failed, and their number
 */
export function hostedIndexer(
  indexer: Indexer, metrics: Metrics,
  onFailed: (definition: IndexDefinition, example: { id: string; error: string }, count: number) => void,
): Indexer {
  const documents = metrics.counter(
    'sectional_index_documents_total',
    'Documents that map functions mapped, once for each index and replica, by outcome: mapped, failed.', ['outcome'],
  )
  return withCalls(indexer, async call => call(), (mapped, definition, rows) => {
    const failed = mapped.filter(({ error }) => error !== undefined).length
    if (mapped.length > failed) documents.add(mapped.length - failed, { outcome: 'mapped' })
    if (failed === 0) return
    documents.add(failed, { outcome: 'failed' })
    const first = mapped.findIndex(({ error }) => error !== undefined)
    onFailed(definition, { id: rows[first]!.id, error: mapped[first]!.error! }, failed)
  })
}

/**
 * Returns an indexer whose calls reject as soon as the signal aborts, although a function may run on for its time
 * limit. So the end of a build, and of a node, does not wait for functions.
 */
export function untilAborted(indexer: Indexer, signal: AbortSignal): Indexer {
  return withCalls(indexer, call => unlessAborted(call(), signal))
}

function withCalls(
  indexer: Indexer, run: <Result>(call: () => Promise<Result>) => Promise<Result>,
  onMapped: (
    mapped: readonly MappedDocument[], definition: IndexDefinition, documents: readonly ChangeRow[],
  ) => void = () => {},
): Indexer {
  return {
    versionOf: definition => indexer.versionOf(definition),
    map: async (definition, documents, signal) => {
      const mapped = await run(() => indexer.map(definition, documents, signal))
      onMapped(mapped, definition, documents)
      return mapped
    },
    groupOf: (...group) => indexer.groupOf(...group),
    reduce: (...lists) => run(() => indexer.reduce(...lists)),
    rereduce: (...lists) => run(() => indexer.rereduce(...lists)),
    encodeGroup: (...group) => indexer.encodeGroup(...group),
    isFailure: (...group) => indexer.isFailure?.(...group) ?? false,
  }
}

function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const cancel = (): void => reject(new ReplicaError('cancelled', 'the build was ended'))
    signal.addEventListener('abort', cancel, { once: true })
    if (signal.aborted) cancel()
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', cancel))
  })
}
