import type { JsonObject } from '../json/json-text.ts'
import { formatFieldPath } from './field-path.ts'
import type { FieldTest, Selector } from './selector.ts'

/**
 * Returns a selector as JSON in its normal form, as `_explain` shows it and partial indexes store it: implicit forms
 * are written out, nested objects have become names with dots, and negations are next to single tests. `parseSelector`
 * reads an equal selector from it.
 */
export function selectorJson(selector: Selector): JsonObject {
  if (selector.kind === 'field') {
    const { path, test, negated } = selector
    const condition = { [test.operator]: argumentOf(test) }
    const tested = negated ? { $not: condition } : condition
    return path.length === 0 ? tested : { [formatFieldPath(path)]: tested }
  }
  const { kind, operands } = selector
  if (kind === 'everything') return {}
  return { [`$${kind}`]: operands.map(selectorJson) }
}

function argumentOf(test: FieldTest): unknown {
  switch (test.operator) {
    case '$in': case '$nin': case '$all': return test.values
    case '$exists': return test.exists
    case '$type': return test.type
    case '$size': return test.size
    case '$mod': return [test.divisor, test.remainder]
    case '$regex': return test.pattern.source
    case '$beginsWith': return test.prefix
    case '$elemMatch': case '$allMatch': case '$keyMapMatch': case '$not': return selectorJson(test.selector)
    default: return test.value
  }
}
