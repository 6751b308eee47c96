import { compileSelector, type DocumentTest } from '../selectors/compile-selector.ts'
import type { FieldPath } from '../selectors/field-path.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'
import type { TestInTime } from '../selectors/text-pattern.ts'
import { DocumentReader } from './document-reader.ts'
import type { StoredDocument } from './selector-document.ts'

/** Operators whose tests of one value are short. */
const shortOperators: ReadonlySet<FieldTest['operator']> =
  new Set(['$eq', '$ne', '$lt', '$lte', '$gt', '$gte', '$exists', '$type', '$size', '$mod'])

/**
 * A selector that is tested on documents as they are stored. It reads only the fields at which the selector looks, and
 * ends with the first short condition that fails: most of the documents of a scan are never read to their end.
 */
export class StoredSelector {
  readonly #reader: DocumentReader
  readonly #matches: DocumentTest
  /** Conditions that each matching document fulfils, by the member of the document that they look at. */
  readonly #conditions: ReadonlyMap<string, readonly DocumentTest[]>

  /** @param testInTime tests the patterns of the selector */
  constructor(selector: Selector, testInTime: TestInTime) {
    this.#reader = new DocumentReader(selectorPaths(selector))
    this.#matches = compileSelector(selector, testInTime)
    const conditions = Map.groupBy(shortConditions(selector), ({ path }) => path[0]!)
    this.#conditions = new Map([...conditions].map(([name, parts]) => [name, parts.map(part => compileSelector(part))]))
  }

  /** Whether a document with these members matches. They must include those at which the selector looks. */
  matchesMembers(document: Readonly<Record<string, unknown>>): boolean {
    return this.#matches(document)
  }

  /** @throws SelectorError when the selector takes too long on the document */
  matches(document: StoredDocument): boolean {
    const members: Record<string, unknown> = {}
    const read = this.#reader.readWhile(document, members, name => {
      const conditions = this.#conditions.get(name)
      return conditions === undefined || conditions.every(condition => condition(members))
    })
    return read !== undefined && this.#matches(read)
  }
}

/** Returns the paths to the fields at which a selector looks. */
export function selectorPaths(selector: Selector): readonly FieldPath[] {
  return selector.kind === 'field' ? [selector.path] : selector.operands.flatMap(selectorPaths)
}

function shortConditions(selector: Selector): readonly Extract<Selector, { kind: 'field' }>[] {
  switch (selector.kind) {
    case 'and': return selector.operands.flatMap(shortConditions)
    case 'or': case 'everything': return []
    case 'field': return isShort(selector.test) ? [selector] : []
  }
}

function isShort(test: FieldTest): boolean {
  return shortOperators.has(test.operator) && !('value' in test && typeof test.value === 'object')
}
