import { PatternBudget, StoredSelector } from '@sectional/core'
import type { FoundDocument, Selector } from '@sectional/core'
import type { Runtime } from '@sectional/runtime'

/** Tests a selector on documents that this node has received. */
export class SelectorTest {
  readonly #selector: StoredSelector
  /** Bounds the time of the patterns of the query. */
  readonly #budget: PatternBudget

  constructor(selector: Selector, { clock, machine }: Pick<Runtime, 'clock' | 'machine'>) {
    this.#budget = new PatternBudget(clock, machine)
    this.#selector = new StoredSelector(selector, this.#budget.testInTime)
  }

  /**
   * Returns whether a document matches. Design documents never do.
   *
   * @param found with its body, and with its leaves if the selector sees `_conflicts`
   * @throws SelectorError when that takes too long
   */
  matches({ id, revision, body, attachments, leaves }: FoundDocument): boolean {
    if (id.startsWith('_design/')) return false
    this.#budget.beginDocument()
    return this.#selector.matches({
      id, revision: revision!, body: body!, ...(attachments && { attachments }), ...(leaves && { leaves }),
    })
  }

  /** Returns whether a document with these members matches. @throws SelectorError when that takes too long */
  matchesMembers(document: Readonly<Record<string, unknown>>): boolean {
    this.#budget.beginDocument()
    return this.#selector.matchesMembers(document)
  }
}
