/** Texts at which parsers tend to fail. */
import fc from 'fast-check'

/** Names of members that every JavaScript object inherits, or that change its prototype. */
export const inheritedNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']

const words = [
  '', 'a', 'b', 'z', '0', '-1', '1', '1.5', '1e400', '9007199254740993', '-0', '99999999999999999999', 'NaN',
  'Infinity',
  'true', 'false', 'null', 'undefined', 'nil', '_', '__', '_design', '_design/', '_design/d', '_local/x', '_all_docs',
  '_users', '.', '..', '../..', '/', '//', '\\', '%', '%2', '%00', '%2F', '%FF', '"',
  "'", '<b>', ';', ',', ':', '=', '&',
  '?', '#', '*', '$', '~', '[]', '{}', '[', '{', '[1]', '{"a":1}', '\0', '\t', '\r\n', 'é', '\u00ff', '\uffff',
    '\ufeff',
  '😀', '\ud800', '1-a', '1-00000000000000000000000000000000', '0-0', '2-zz', '-1-x', 'now', 'ok', 'x'.repeat(300),
  ...inheritedNames,
]

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...words) },
  { weight: 2, arbitrary: fc.array(fc.constantFrom(...words), { maxLength: 4 }).map(parts => parts.join('')) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.integer().map(String) },
)

/** Texts that a header of HTTP can carry: bytes as characters, without control characters other than the tab. */
export const oddHeader: fc.Arbitrary<string> =
  oddText.map(text => Buffer.from(text).toString('latin1').replace(/[^\t\x20-\x7e\x80-\xff]/g, '').trim())

/**
 * Changes a text at a few places: characters are removed, replaced or repeated. Most changed texts are nearly valid, so
 * that they get further into a parser than random ones.
 */
export function changed(original: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const change = fc.tuple(fc.nat(), fc.constantFrom('remove', 'insert', 'replace', 'repeat'), oddText)
  return fc.tuple(original, fc.array(change, { maxLength: 3 })).map(([text, changes]) => {
    let result = text
    for (const [at, kind, odd] of changes) {
      const place = result.length === 0 ? 0 : at % (result.length + 1)
      const end = kind === 'insert' || kind === 'repeat' ? place : place + 1
      const added = kind === 'remove' ? '' : kind === 'repeat' ? result.slice(place).slice(0, 200) : odd
      result = result.slice(0, place) + added + result.slice(end)
    }
    return result
  })
}
