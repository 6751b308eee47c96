import type { Metrics } from '@sectional/runtime'
import type { Indexer } from './indexer.ts'

/** Returns an indexer that also counts the documents that it maps. */
export function measuredIndexer(indexer: Indexer, metrics: Metrics): Indexer {
  const documents = metrics.counter(
    'sectional_index_documents_total',
    'Documents that map functions mapped, once for each index and replica, by outcome: mapped, failed.', ['outcome'],
  )
  return {
    version: indexer.version,
    map: async (definition, rows, signal) => {
      const mapped = await indexer.map(definition, rows, signal)
      const failed = mapped.filter(({ error }) => error !== undefined).length
      if (mapped.length > failed) documents.add(mapped.length - failed, { outcome: 'mapped' })
      if (failed > 0) documents.add(failed, { outcome: 'failed' })
      return mapped
    },
    groupOf: (...group) => indexer.groupOf(...group),
    reduce: (...lists) => indexer.reduce(...lists),
    rereduce: (...lists) => indexer.rereduce(...lists),
    encodeGroup: (...group) => indexer.encodeGroup(...group),
  }
}
