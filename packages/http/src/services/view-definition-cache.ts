import type { DatabaseRecord, DesignDocument } from '@sectional/cluster'
import { viewDefinitions, type IndexDefinition } from '@sectional/core'

/**
 * The definitions of the views of design documents, as long as these are in the cache of the node. So a definition is
 * the same object for each query.
 */
export class ViewDefinitionCache {
  readonly #definitions = new WeakMap<DesignDocument, ReadonlyMap<string, IndexDefinition>>()

  /** Returns undefined when the document has no such view, or one that cannot be queried. */
  get(document: DesignDocument, viewName: string, database: DatabaseRecord): IndexDefinition | undefined {
    return this.all(document, database).get(viewName)
  }

  /** Returns the definitions of all views that can be queried, by their names. */
  all(document: DesignDocument, database: DatabaseRecord): ReadonlyMap<string, IndexDefinition> {
    let known = this.#definitions.get(document)
    if (known === undefined) this.#definitions.set(document, known = viewDefinitions(document.members, database))
    return known
  }
}
