import { partitionPrefix } from '../collation/partition-prefix.ts'
import { SortKeyEncoder } from '../collation/sort-key.ts'
import type { IndexDefinition } from '../contracts/index-replica.ts'
import { parseText } from '../json/json-text.ts'
import { compileSelector } from '../selectors/compile-selector.ts'
import { fieldAt, parseFieldPaths } from '../selectors/field-path.ts'
import { parseSelector } from '../selectors/selector.ts'
import type { TestInTime } from '../selectors/text-pattern.ts'
import { decodeViewRow, encodeViewRow } from '../views/view-row-codec.ts'
import { parseQueryIndex } from './query-index.ts'
import { DocumentReader } from './document-reader.ts'
import type { StoredDocument } from './selector-document.ts'
import { selectorPaths } from './stored-selector.ts'

export interface QueryRow {
  /** The binary sort key of the array of values, behind the partition's in an index that is ordered by partition. */
  readonly key: string
  /** The array of values and `null`, as the row of a view (`encodeViewRow`). */
  readonly value: Uint8Array
}

/** Returns the values of the index's fields in a row. @param value of the row (`QueryRow.value`) */
export function queryRowValues(value: Uint8Array): readonly unknown[] {
  return parseText(decodeViewRow(value).key) as readonly unknown[]
}

/** The value of each row of an index, which is not used. */
const rowValue = 'null'

/**
 * Returns the function that makes the row of a document, or undefined for a document without a row. It throws
 * SelectorError when the partial filter takes too long on the document, and ApiError when the key is too long.
 *
 * @param definition as `queryIndexDefinition` makes it
 * @param testInTime tests the patterns of the partial filter
 * @throws SelectorError, SyntaxError or TypeError for another definition
 */
export function queryRowMaker(
  definition: IndexDefinition, testInTime?: TestInTime,
): (document: StoredDocument) => QueryRow | undefined {
  const { fields, partialFilter, partitioned } = parseQueryIndex(definition)
  const paths = parseFieldPaths(fields)
  const selector = partialFilter && parseSelector(partialFilter)
  const filter = selector && compileSelector(selector, testInTime)
  const reader = new DocumentReader([...paths, ...selector ? selectorPaths(selector) : []])
  const encoder = new SortKeyEncoder('root')
  return stored => {
    const { id } = stored
    if (id.startsWith('_design/')) return undefined
    const document = reader.read(stored)
    const values: unknown[] = []
    for (const path of paths) {
      const field = fieldAt(document, path)
      if (field.kind !== 'found') return undefined
      values.push(field.value)
    }
    if (filter?.(document) === false) return undefined
    const prefix = partitioned ? partitionPrefix(id.slice(0, id.indexOf(':'))) : ''
    return { key: prefix + encoder.encode(values), value: encodeViewRow(JSON.stringify(values), rowValue) }
  }
}
