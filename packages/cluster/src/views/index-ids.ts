import { indexId, type IndexDefinition } from '@sectional/core'

/** Computes the ids of indexes (`indexId`), once for each definition that is in use. */
export class IndexIds {
  readonly #known = new WeakMap<IndexDefinition, string>()

  of(definition: IndexDefinition): string {
    let id = this.#known.get(definition)
    if (id === undefined) {
      id = indexId(definition)
      this.#known.set(definition, id)
    }
    return id
  }
}
