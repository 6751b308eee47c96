/** Which fields a selector names, and what it demands of them. Fields are named as `formatFieldPath` writes them. */
import { formatFieldPath } from '../selectors/field-path.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'

export interface SelectorFields {
  /** All fields at which the selector looks, in its order. Fields of elements (`$elemMatch`) are not among them. */
  readonly all: ReadonlySet<string>
  /** Fields that each matching document has. */
  readonly required: ReadonlySet<string>
  /**
   * Fields with a condition that a range of keys may serve: a comparison, `$exists` or `$beginsWith` that each matching
   * document fulfils. CouchDB ranks indexes by these fields.
   */
  readonly indexable: ReadonlySet<string>
  /** Fields that have one value in all matching documents. */
  readonly constant: ReadonlySet<string>
}

/** The test of one field that each matching document passes. */
export type Condition = Extract<Selector, { kind: 'field' }>

const indexableOperators: ReadonlySet<FieldTest['operator']> =
  new Set(['$eq', '$lt', '$lte', '$gt', '$gte', '$exists', '$beginsWith'])

export function selectorFields(selector: Selector): SelectorFields {
  const conditions = conditionsOf(selector)
  const namesOf = (isChosen: (condition: Condition) => boolean): ReadonlySet<string> =>
    new Set(conditions.filter(isChosen).map(({ path }) => formatFieldPath(path)))
  return {
    all: addAllFields(selector, new Set()),
    required: addRequiredFields(selector, new Set()),
    indexable: namesOf(({ test, negated }) => !negated && indexableOperators.has(test.operator)),
    constant: namesOf(({ test }) => test.operator === '$eq'),
  }
}

/**
 * Whether the selector is nothing but an `$and` or `$or` without operands. As a part of a selector it is true, as in
 * CouchDB; as the whole selector it selects no documents.
 */
export function isEmptyCombination(selector: Selector): boolean {
  return (selector.kind === 'and' || selector.kind === 'or') && selector.operands.length === 0
}

/** Returns the conditions that each matching document fulfils, without those inside of an `$or`. */
export function conditionsOf(selector: Selector): readonly Condition[] {
  return addConditions(selector, [])
}

// Selectors may be nested deeply and have many conditions, so all levels add to one collection.

function addConditions(selector: Selector, into: Condition[]): readonly Condition[] {
  if (selector.kind === 'field') into.push(selector)
  else if (selector.kind === 'and') for (const operand of selector.operands) addConditions(operand, into)
  return into
}

function addAllFields(selector: Selector, into: Set<string>): ReadonlySet<string> {
  if (selector.kind === 'field') into.add(formatFieldPath(selector.path))
  else for (const operand of selector.operands) addAllFields(operand, into)
  return into
}

/** A test only passes on a field that exists, unless it demands the contrary. */
function addRequiredFields(selector: Selector, into: Set<string>): ReadonlySet<string> {
  const { kind } = selector
  if (kind === 'field') {
    const { test, path } = selector
    if (test.operator !== '$exists' || test.exists) into.add(formatFieldPath(path))
  } else if (kind === 'and' || selector.operands.length === 1) {
    for (const operand of selector.operands) addRequiredFields(operand, into)
  } else {
    const [first = new Set<string>(), ...others] =
      selector.operands.map(operand => addRequiredFields(operand, new Set()))
    for (const name of first) if (others.every(fields => fields.has(name))) into.add(name)
  }
  return into
}
