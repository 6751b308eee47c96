/** JSON values and texts at which code tends to fail that expects other ones. */
import fc from 'fast-check'
import { inheritedNames, oddText } from './odd-text.ts'

const numbers = [0, -0, -1, 1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 5e-324]

/** Values that JSON can express. An object may have a member `__proto__` of its own. */
export const oddValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false, ...numbers),
    oddText.map(wellFormed),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(fc.oneof(fc.constantFrom(...inheritedNames), oddText.map(wellFormed)), tie('value')), {
      maxLength: 3,
    }).map(objectOf),
  ),
})).value

/** Replaces lone surrogates, which JSON in UTF-8 cannot express. */
function wellFormed(text: string): string {
  return text.toWellFormed()
}

function objectOf(members: readonly (readonly [string, unknown])[]): object {
  const object = {}
  for (const [name, value] of members) define(object, name, value)
  return object
}

/** Sets a member, also one that is named `__proto__`. */
function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}

const brokenTexts = [
  '', ' ', '{', '[', '"', '{"a":}', '{"a":1,}', '{"a":1,"a":2}', '{"_id":"x","_id":"y"}', '[1e999]', '{"a":01}', 'nul',
  '\ufeff{}', '{}\0', '{} {}', '"\\ud800"', '{"\\u005f\\u005fproto__":1}', '{"a\\u0000":1}', '[1,]', "{'a':1}", '-',
  '{"n":123456789012345678901234567890}', '{"docs":[{"_id":"a","_id":"b"}]}',
  '['.repeat(2000), `${'['.repeat(2000)}${']'.repeat(2000)}`, '{"a":'.repeat(1500),
]

type Change = readonly [at: number, kind: 'replace' | 'remove' | 'add', name: string, value: unknown]

const change: fc.Arbitrary<Change> = fc.tuple(
  fc.nat(60), fc.constantFrom('replace' as const, 'remove' as const, 'add' as const), oddText.map(wellFormed), oddValue,
)

/** Changes a JSON value at a few places, so that most of it stays valid. */
export function changedValue(original: unknown): fc.Arbitrary<unknown> {
  return fc.array(change, { maxLength: 3 }).map(changes => changes.reduce(applied, structuredClone(original)))
}

/** Bodies near one of the examples, and texts that are no JSON. */
export function jsonText(examples: readonly unknown[]): fc.Arbitrary<string> {
  const near = fc.oneof(...examples.map(changedValue)).map(value => JSON.stringify(value))
  return fc.oneof(
    { weight: 12, arbitrary: near }, { weight: 2, arbitrary: oddValue.map(value => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.constantFrom(...brokenTexts) },
  )
}

interface Place { readonly holder: object; readonly name: string }

function applied(value: unknown, [at, kind, name, odd]: Change): unknown {
  const places: Place[] = []
  collect(value, places)
  const place = places[at % (places.length + 1)]
  if (place === undefined) return kind === 'replace' ? odd : value
  if (kind === 'replace') define(place.holder, place.name, odd)
  else if (kind === 'add') add(place.holder, name, odd)
  else if (Array.isArray(place.holder)) place.holder.splice(Number(place.name), 1)
  else Reflect.deleteProperty(place.holder, place.name)
  return value
}

function add(holder: object, name: string, value: unknown): void {
  if (Array.isArray(holder)) holder.push(value)
  else define(holder, name, value)
}

function collect(value: unknown, places: Place[]): void {
  if (typeof value !== 'object' || value === null) return
  for (const name of Object.keys(value)) {
    places.push({ holder: value, name })
    collect((value as Record<string, unknown>)[name], places)
  }
}
