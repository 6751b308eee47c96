import {
  compileSelector, parseSelector, selectorDocument, type DocumentTest, type FoundDocument,
} from '@sectional/core'
import type { Runtime } from '@sectional/runtime'

/** Tests a selector on documents that this node has received. */
export class SelectorTest {
  readonly #matches: DocumentTest

  /** @param text JSON text of a selector that is valid */
  constructor(text: string, { machine }: Pick<Runtime, 'machine'>) {
    this.#matches = compileSelector(parseSelector(JSON.parse(text)), (pattern, value, msMax) =>
      msMax === Infinity ? pattern.test(value) : machine.testInTime(pattern, value, msMax))
  }

  /**
   * Returns whether a document matches. Design documents never do.
   *
   * @param found with its body, and with its leaves if the selector sees `_conflicts`
   * @throws SelectorError when that takes too long
   */
  matches({ id, revision, body, attachments, leaves }: FoundDocument): boolean {
    if (id.startsWith('_design/')) return false
    return this.matchesMembers(selectorDocument({
      id, revision: revision!, body: body!, ...(attachments && { attachments }), ...(leaves && { leaves }),
    }))
  }

  /** Returns whether a document with these members matches. @throws SelectorError when that takes too long */
  matchesMembers(document: Readonly<Record<string, unknown>>): boolean {
    return this.#matches(document)
  }
}
