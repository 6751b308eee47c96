import { ReplicaError } from '@sectional/core'
import type { Metrics } from '@sectional/runtime'
import type { Indexer } from './indexer.ts'

/**
 * Returns an indexer as a node uses it: it counts the documents that it maps, and a call of `map` rejects as soon as
 * its build ends, although the function may run on for its time limit.
 */
export function hostedIndexer(indexer: Indexer, metrics: Metrics): Indexer {
  const documents = metrics.counter(
    'sectional_index_documents_total',
    'Documents that map functions mapped, once for each index and replica, by outcome: mapped, failed.', ['outcome'],
  )
  return {
    version: indexer.version,
    map: async (definition, rows, signal) => {
      const mapped = await unlessAborted(indexer.map(definition, rows, signal), signal)
      const failed = mapped.filter(({ error }) => error !== undefined).length
      if (mapped.length > failed) documents.add(mapped.length - failed, { outcome: 'mapped' })
      if (failed > 0) documents.add(failed, { outcome: 'failed' })
      return mapped
    },
    groupOf: (...group) => indexer.groupOf(...group),
    reduce: (...lists) => indexer.reduce(...lists),
    rereduce: (...lists) => indexer.rereduce(...lists),
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
