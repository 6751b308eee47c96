/**
 * The sort keys that a field of a matching document may have, as intervals. They are computed from the conditions of a
 * selector: an `$and` intersects the intervals of its operands, an `$or` unites them.
 */
import { afterKeysWith, afterPrefix, type SortKeyEncoder } from '../collation/sort-key.ts'
import { ApiError } from '../errors.ts'
import { formatFieldPath } from '../selectors/field-path.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'

/** The texts from `start` to before `end`. */
export interface KeyInterval { readonly start: string; readonly end: string }

/** Disjoint intervals in ascending order. */
export type KeyIntervals = readonly KeyInterval[]

/** Less than or equal to each key, and greater than each key: a key begins with the tag of a type. */
const [first, last] = ['\u0001', '\u00ff'] as const
const all: KeyIntervals = [{ start: first, end: last }]

/** Most intervals of one field. More are replaced by all keys. */
const intervalsMax = 1000

/**
 * Returns for each of some fields the intervals that contain its sort key in all documents that match the selector and
 * have the field. They may contain other keys.
 *
 * @param names of the fields, as `formatFieldPath` writes them
 * @param encoder of root collation
 */
export function fieldIntervals(
  selector: Selector, names: readonly string[], encoder: SortKeyEncoder,
): readonly KeyIntervals[] {
  const narrowed = new Map<string, KeyIntervals>()
  new IntervalReader(new Set(names), encoder).narrow(selector, narrowed)
  return names.map(name => narrowed.get(name) ?? all)
}

/** The intervals of fields. Fields without an entry have all keys. */
type FieldIntervals = Map<string, KeyIntervals>

/** Reads the conditions on some fields, each once. */
class IntervalReader {
  readonly #names: ReadonlySet<string>
  readonly #encoder: SortKeyEncoder

  constructor(names: ReadonlySet<string>, encoder: SortKeyEncoder) {
    this.#names = names
    this.#encoder = encoder
  }

  /** Intersects the intervals of the fields with those of a selector. */
  narrow(selector: Selector, fields: FieldIntervals): void {
    const { kind } = selector
    if (kind === 'field') {
      const name = formatFieldPath(selector.path)
      if (this.#names.has(name) && !selector.negated) narrowField(fields, name, this.#ofTest(selector.test, name))
    } else if (kind === 'and' || selector.operands.length === 1) {
      for (const operand of selector.operands) this.narrow(operand, fields)
    } else {
      const [first = new Map(), ...others] = selector.operands.map(operand => {
        const narrowed: FieldIntervals = new Map()
        this.narrow(operand, narrowed)
        return narrowed
      })
      for (const [name, intervals] of first) {
        const alternatives = others.map(other => other.get(name))
        if (alternatives.includes(undefined)) continue
        narrowField(fields, name, bounded(union([...intervals, ...alternatives.flatMap(each => each ?? [])])))
      }
    }
  }

  #ofTest(test: FieldTest, name: string): KeyIntervals {
    try {
      return bounded(name === '_id' ? this.#ofIdTest(test) : this.#ofValueTest(test))
    } catch (error) {
      // The key of a value of the selector is too long.
      if (error instanceof ApiError) return all
      throw error
    }
  }

  /** Ids are compared by bytes, so only tests of equality select keys in root collation. */
  #ofIdTest(test: FieldTest): KeyIntervals {
    return test.operator === '$eq' || test.operator === '$in' ? this.#ofValueTest(test) : all
  }

  #ofValueTest(test: FieldTest): KeyIntervals {
    switch (test.operator) {
      case '$eq': return [this.#point(test.value)]
      case '$lt': return nonEmpty({ start: first, end: this.#encoder.encode(test.value) })
      case '$lte': return [{ start: first, end: this.#point(test.value).end }]
      case '$gt': return [{ start: this.#point(test.value).end, end: last }]
      case '$gte': return [{ start: this.#encoder.encode(test.value), end: last }]
      // An array matches that has one of the values.
      case '$in': return test.values.length > intervalsMax
        ? all
        : test.values.length === 0 ? [] : union([...test.values.map(value => this.#point(value)), ...this.#ofType([])])
      case '$beginsWith': {
        const start = this.#encoder.encodePrefix(test.prefix)
        return [{ start, end: afterPrefix(start) }]
      }
      case '$exists': return test.exists ? all : []
      case '$mod': return this.#ofType(0)
      case '$regex': return this.#ofType('')
      case '$all': case '$size': case '$elemMatch': case '$allMatch': return this.#ofType([])
      case '$keyMapMatch': return this.#ofType({})
      default: return all
    }
  }

  #point(value: unknown): KeyInterval {
    const start = this.#encoder.encode(value)
    return { start, end: afterKeysWith(start) }
  }

  /** Returns the keys of all values that have the type of a value. */
  #ofType(value: unknown): KeyIntervals {
    const start = this.#encoder.encode(value).slice(0, 1)
    return [{ start, end: afterPrefix(start) }]
  }
}

/** Whether an interval contains the keys of one value only: `start`. */
export function isOneKey({ start, end }: KeyInterval): boolean {
  return end === afterKeysWith(start)
}

/** Whether the intervals contain the keys of one value only. */
export function isFixed(intervals: KeyIntervals): boolean {
  return intervals.length === 1 && isOneKey(intervals[0]!)
}

function narrowField(fields: FieldIntervals, name: string, intervals: KeyIntervals): void {
  const present = fields.get(name)
  if (intervals !== all) fields.set(name, present === undefined ? intervals : intersection(present, intervals))
}

function nonEmpty(interval: KeyInterval): KeyIntervals {
  return interval.start < interval.end ? [interval] : []
}

/** Returns the intervals, or all keys when there are too many. */
function bounded(intervals: KeyIntervals): KeyIntervals {
  return intervals.length <= intervalsMax ? intervals : all
}

function union(intervals: KeyIntervals): KeyIntervals {
  const united: KeyInterval[] = []
  for (const next of intervals.toSorted((a, b) => a.start < b.start ? -1 : a.start > b.start ? 1 : 0)) {
    const previous = united.at(-1)
    if (previous === undefined || previous.end < next.start) united.push(next)
    else if (previous.end < next.end) united[united.length - 1] = { start: previous.start, end: next.end }
  }
  return united
}

function intersection(left: KeyIntervals, right: KeyIntervals): KeyIntervals {
  const common: KeyInterval[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    const [a, b] = [left[i]!, right[j]!]
    const start = a.start > b.start ? a.start : b.start
    const end = a.end < b.end ? a.end : b.end
    if (start < end) common.push({ start, end })
    if (a.end < b.end) i++
    else j++
  }
  return common
}
