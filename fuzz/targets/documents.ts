/** JSON, documents, selectors and positions, which clients send. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  compileSelector, decodeBookmark, decodeSinceToken, encodeBookmark, encodeSinceToken, formatRevision, isJsonObject,
  matchesSelector, parseBulkDocuments, parseDocument, parseExactly, parseFieldPath, parseJson, parseSelector,
  projectFields, readRevision, SelectorError, selectorJson, type JsonObject, type Selector, type SincePart,
} from '@sectional/core'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { selectors } from '../generators/body-examples.ts'
import { changedValue, jsonText, oddValue } from '../generators/odd-json.ts'
import { bookmarks, sinceParts, sinceTokens } from '../generators/positions.ts'
import { changed, oddText } from '../generators/odd-text.ts'
import { refusesOr } from './parsers.ts'

const runsInTests = 300
const examples = [{ _id: 'a', x: 1, y: { z: [1, 'a'] } }, { docs: [{ _id: 'a' }, { _id: 'b', _deleted: true }] }, [1,
  'a']]

const json = target({
  name: 'json', runsInTests, inputs: fc.tuple(fc.oneof(...examples.map(changedValue), oddValue), jsonText(examples)),
  property: 'JSON is parsed to the value of which it was written, also with all digits; other texts are refused.',
  check: ([value, text]) => {
    // JSON.parse is no model: V8 misreads some names with escapes (packages/core/src/json/misread-names.ts).
    const written = JSON.stringify(value)
    assert.equal(JSON.stringify(parseJson(Buffer.from(written))), written)
    assert.equal(JSON.stringify(parseExactly(written)), written)
    refusesOr(() => parseJson(Buffer.from(text)))
    refusesOr(() => parseDocument(Buffer.from(text)))
    refusesOr(() => parseBulkDocuments(Buffer.from(text)))
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  },
})

/** Fails when code has changed what all objects inherit. */
function assertUnpolluted(): void {
  for (const name in {}) assert.fail(`every object has inherited ${name}`)
  assert.equal(Object.getPrototypeOf({}), Object.prototype)
}

function orSelectorError<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof SelectorError && error.message !== '') return undefined
    throw error
  }
}

const selector = target({
  name: 'selectors', runsInTests,
  inputs: fc.tuple(fc.oneof(...selectors.map(changedValue), oddValue), changedValue(examples[0]), oddText),
  property: 'A selector is refused, or the compiled form agrees with the plain one, also after it was written as JSON.',
  check: ([value, document, name]) => {
    const parsed = orSelectorError(() => parseSelector(value))
    if (parsed !== undefined) {
      const again = orSelectorError(() => parseSelector(selectorJson(parsed))) as Selector
      assert.deepEqual(selectorJson(again), selectorJson(parsed))
      const matches = orSelectorError(() => matchesSelector(parsed, document))
      assert.equal(orSelectorError(() => compileSelector(parsed)(document as JsonObject)), matches)
      assert.equal(orSelectorError(() => matchesSelector(again, document)), matches)
    }
    const path = orSelectorError(() => parseFieldPath(name))
    if (path !== undefined) projectFields(document, [path])
    assertUnpolluted()
  },
})

const since = target({
  name: 'since-tokens', runsInTests, inputs: fc.tuple(sinceParts, changed(sinceTokens)),
  property: 'A since-token is decoded to the position that it was made of; a changed one is decoded or malformed.',
  check: ([parts, text]) => {
    const sorted = parts.toSorted((a, b) => a.range.begin - b.range.begin || a.range.end - b.range.end)
    const decoded = decodeSinceToken(encodeSinceToken(parts))
    assert(decoded.kind === 'vector')
    assert.deepEqual(decoded.parts.toSorted(byContent), sorted.toSorted(byContent))
    const other = decodeSinceToken(text)
    if (other.kind !== 'vector') return
    for (const each of other.parts) assert(each.range.begin >= 0 && each.range.begin <= each.range.end, text)
  },
})

function byContent(a: SincePart, b: SincePart): number {
  const [one, other] = [JSON.stringify(a), JSON.stringify(b)]
  return one < other ? -1 : one > other ? 1 : 0
}

const bookmark = target({
  name: 'bookmarks', runsInTests, inputs: fc.tuple(bookmarks, changed(bookmarks)),
  property: 'A bookmark is decoded and encoded again; a changed one is decoded or none.',
  check: ([text, other]) => {
    assert.equal(encodeBookmark(decodeBookmark(text)!), text)
    decodeBookmark(other)
  },
})

const revisions = target({
  name: 'revisions', runsInTests, inputs: changed(fc.constantFrom('1-a', '12-967a00dff5e02add41819138abb3284d')),
  property: 'A revision that is read is written and read again as the same one.',
  check: text => {
    const revision = readRevision(text)
    if (revision !== null) assert.deepEqual(readRevision(formatRevision(revision)), revision)
    assert(isJsonObject({}))
  },
})

export const documentTargets: readonly FuzzTarget[] = [json, selector, since, bookmark, revisions]
