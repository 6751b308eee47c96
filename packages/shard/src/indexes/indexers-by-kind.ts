import { type IndexDefinition, ReplicaError } from '@sectional/core'
import type { Indexer } from './indexer.ts'

/**
 * Returns an indexer that passes each call on to the indexer of the definition's kind. Calls for another kind reject
 * with ReplicaError `unsupported`. Another kind has a version, too, because a store may contain indexes of it.
 */
export function indexersByKind(indexers: Readonly<Record<string, Indexer>>): Indexer {
  const byKind = new Map(Object.entries(indexers))
  const of = ({ kind }: IndexDefinition): Indexer => {
    const indexer = byKind.get(kind)
    if (indexer === undefined) throw new ReplicaError('unsupported', `this node has no indexes of the kind ${kind}`)
    return indexer
  }
  return {
    versionOf: definition => byKind.get(definition.kind)?.versionOf(definition) ?? '',
    map: async (definition, documents, signal) => of(definition).map(definition, documents, signal),
    groupOf: (key, level, definition) => of(definition).groupOf(key, level, definition),
    reduce: async (definition, lists) => of(definition).reduce(definition, lists),
    rereduce: async (definition, lists) => of(definition).rereduce(definition, lists),
    encodeGroup: (definition, row, level, value) => of(definition).encodeGroup(definition, row, level, value),
    isFailure: (definition, group) => of(definition).isFailure?.(definition, group) ?? false,
  }
}
