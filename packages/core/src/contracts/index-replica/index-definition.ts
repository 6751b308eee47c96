/** The definition of an index. Everything on which the rows of an index depend is in it. */
import { createHash } from 'node:crypto'

/**
 * Views with equal definitions share one index of a replica. The functions are opaque to coordinators; only the indexer
 * of that `kind` reads them.
 */
export interface IndexDefinition {
  /** Names the indexer: the `language` of the design document, for instance `javascript`, or `query` for Mango. */
  readonly kind: string
  /** Source text of the map function, or the fields of a Mango index as JSON text. */
  readonly map: string
  /** Source text or name of the reduce function; null: the index cannot be reduced. */
  readonly reduce: string | null
  /** Options and library modules on which the rows depend, by name. Their order has no meaning. */
  readonly options: Readonly<Record<string, string | boolean>>
}

/** Returns the id of an index: SHA-256 of its definition, in lower-case hex. Every node computes the same id. */
export function indexId({ kind, map, reduce, options }: IndexDefinition): string {
  const sorted = Object.keys(options).toSorted().map(name => [name, options[name]])
  return createHash('sha256').update(JSON.stringify([kind, map, reduce, sorted])).digest('hex')
}
