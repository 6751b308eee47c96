import { ReplicaError } from '@sectional/core'
import type { Metrics } from '@sectional/runtime'
import type { Indexer, MappedDocument } from './indexer.ts'

/** Returns an indexer that counts the documents that it maps. */
export function hostedIndexer(indexer: Indexer, metrics: Metrics): Indexer {
  const documents = metrics.counter(
    'sectional_index_documents_total',
    'Documents that map functions mapped, once for each index and replica, by outcome: mapped, failed.', ['outcome'],
  )
  return withCalls(indexer, async call => call(), mapped => {
    const failed = mapped.filter(({ error }) => error !== undefined).length
    if (mapped.length > failed) documents.add(mapped.length - failed, { outcome: 'mapped' })
    if (failed > 0) documents.add(failed, { outcome: 'failed' })
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
  onMapped: (documents: readonly MappedDocument[]) => void = () => {},
): Indexer {
  return {
    version: indexer.version,
    map: async (...documents) => {
      const mapped = await run(() => indexer.map(...documents))
      onMapped(mapped)
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
