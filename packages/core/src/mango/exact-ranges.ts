import type { SortKeyEncoder } from '../collation/sort-key.ts'
import { formatFieldPath } from '../selectors/field-path.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'
import { fieldIntervals, isOneKey } from './key-intervals.ts'
import { conditionsOf } from './selector-fields.ts'

/** Tests that pass exactly the values whose sort keys are in one interval. */
const intervalOperators: ReadonlySet<FieldTest['operator']> = new Set(['$eq', '$lt', '$lte', '$gt', '$gte'])

/**
 * Whether all documents with a row in the ranges of an index (`indexRanges`) match the selector. The ranges have the
 * rows of all matching documents anyway. So their rows can be counted in place of the matches, and a document need not
 * be tested if its row is that of its present revision.
 *
 * @param fields the columns of the index
 * @param encoder of root collation
 */
export function hasExactRanges(
  selector: Selector, fields: readonly { readonly name: string }[], encoder: SortKeyEncoder,
): boolean {
  if (hasAlternatives(selector)) return false
  const columns = fieldIntervals(selector, fields.map(({ name }) => name), encoder)
  // The first column that may have several values adds its interval to the ranges, and later ones add nothing.
  const last = columns.findIndex(intervals => !intervals.every(isOneKey))
  return conditionsOf(selector).every(({ path, test, negated }) => {
    const name = formatFieldPath(path)
    const column = fields.findIndex(field => field.name === name)
    // Ids and revisions may be compared by bytes, but rows are in the order of a collation.
    if (negated || column === -1 || name.startsWith('_')) return false
    // Each row has all columns.
    if (test.operator === '$exists') return test.exists
    return intervalOperators.has(test.operator) && (last === -1 || column <= last) && isInKey(test, encoder)
  })
}

function hasAlternatives(selector: Selector): boolean {
  return selector.kind !== 'field' && (selector.kind === 'or' || selector.operands.some(hasAlternatives))
}

/** Whether the value of a test has a sort key. Without one, the test does not make the ranges narrower. */
function isInKey(test: FieldTest, encoder: SortKeyEncoder): boolean {
  if (!('value' in test)) return false
  try {
    encoder.encode(test.value)
    return true
  } catch {
    return false
  }
}
