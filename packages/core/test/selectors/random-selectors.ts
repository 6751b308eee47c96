/** Random documents and selectors over a few fields and values, so that they often match. */
import fc from 'fast-check'
import type { JsonObject } from '../../src/index.ts'

export const fieldNames = ['a', 'b', 'a.b', 'a.0', 'c\\.d', '_id']

const scalar = fc.oneof(
  fc.constant(null), fc.boolean(), fc.integer({ min: -3, max: 3 }), fc.constant(-0), fc.constant(1.5),
  fc.constantFrom('', 'a', 'A', 'ab', 'b', 'é', 'e\u0301', 'z', '\u0000a', 'l·', 'l', 'и', 'й'),
)

/** A JSON value. */
export const value: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof({ maxDepth: 2 }, scalar, fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c.d'), tie('value'), { maxKeys: 2 })),
})).value

export const document: fc.Arbitrary<JsonObject> = fc.record(
  { _id: fc.constantFrom('a', 'ab', 'A', 'b', 'é'), a: value, b: value, 'c.d': value }, { requiredKeys: ['_id'] },
).map(members => ({ ...members }))

const text = fc.constantFrom('', 'a', 'A', 'ab', 'e', 'l', 'и')

/** The operators that test one value, without those that contain selectors. */
const simpleTest: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.tuple(fc.constantFrom('$eq', '$ne', '$lt', '$lte', '$gt', '$gte'), value),
  fc.tuple(fc.constantFrom('$in', '$nin', '$all'), fc.array(value, { maxLength: 3 })),
  fc.tuple(fc.constant('$exists'), fc.boolean()),
  fc.tuple(fc.constant('$type'), fc.constantFrom('null', 'boolean', 'number', 'string', 'array', 'object', 'other')),
  fc.tuple(fc.constant('$size'), fc.integer({ min: 0, max: 2 })),
  fc.tuple(fc.constant('$mod'), fc.tuple(fc.constantFrom(2, -2, 3), fc.integer({ min: -1, max: 1 }))),
  fc.tuple(fc.constantFrom('$regex', '$beginsWith'), text),
).map(([operator, argument]) => ({ [operator]: argument }))

interface Parts { readonly test: JsonObject; readonly selector: JsonObject; readonly inner: JsonObject }

/** A selector of documents with any of the operators. */
export const selector: fc.Arbitrary<JsonObject> = fc.letrec<Parts>((tie: fc.LetrecTypedTie<Parts>) => {
  const combined = (part: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
    fc.tuple(fc.constantFrom('$and', '$or', '$nor'), fc.array(part, { minLength: 1, maxLength: 3 }))
      .map(([operator, operands]) => ({ [operator]: operands }))
  const negated = (part: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> => part.map($not => ({ $not }))
  return {
    test: fc.oneof({ maxDepth: 2 }, { weight: 6, arbitrary: simpleTest },
      fc.tuple(fc.constantFrom('$elemMatch', '$allMatch', '$keyMapMatch'), tie('inner'))
        .map(([operator, argument]) => ({ [operator]: argument })),
      negated(tie('test'))),
    selector: fc.oneof({ maxDepth: 3 },
      { weight: 5, arbitrary: fc.dictionary(fc.constantFrom(...fieldNames), tie('test'), { minKeys: 1, maxKeys: 3 }) },
      combined(tie('selector')), negated(tie('selector'))),
    inner: fc.oneof({ maxDepth: 2 }, tie('test'), combined(tie('test')), tie('selector')),
  }
}).selector
