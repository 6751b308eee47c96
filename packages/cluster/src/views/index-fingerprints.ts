import { hash } from 'node:crypto'
import { haveSameElements } from './same-elements.ts'

/** Number of indexes whose fingerprints are remembered. The oldest is forgotten. */
const entriesMax = 1000

interface Fingerprint { readonly versions: readonly string[]; readonly text: string }

/**
 * Computes fingerprints of the rows of indexes from the versions that the shards have reported, which are digests of
 * rows. So a fingerprint does not depend on which replicas answer. The last one of each index is remembered, since it
 * changes only with the rows.
 */
export class IndexFingerprints {
  readonly #known = new Map<string, Fingerprint>()

  /**
   * @param index its id (`indexId`)
   * @param versions of the shards, in the order of their ranges
   */
  of(index: string, versions: readonly string[]): string {
    const known = this.#known.get(index)
    if (known !== undefined && haveSameElements(known.versions, versions)) return known.text
    const text = hash('md5', `${index}\n${versions.join('\n')}`)
    this.#known.delete(index)
    this.#known.set(index, { versions, text })
    if (this.#known.size > entriesMax) this.#known.delete(this.#known.keys().next().value!)
    return text
  }
}
