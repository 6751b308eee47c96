/** Positions in changes and in pages of queries that clients can make up: their tokens have no secret. */
import fc from 'fast-check'
import { encodeBookmark, encodeSinceToken, type SincePart } from '@sectional/core'
import { oddValue } from './odd-json.ts'
import { oddText } from './odd-text.ts'

const text = oddText.map(each => each.toWellFormed())
const range = fc.tuple(fc.nat(0xffff_ffff), fc.nat(0xffff_ffff)).map(([a, b]) => ({
  begin: Math.min(a, b), end: Math.max(a, b),
}))
const part: fc.Arbitrary<SincePart> = fc.record({
  range, node: text, history: text,
  sequence: fc.maxSafeNat(),
}, { noNullPrototype: true })

export const sinceParts: fc.Arbitrary<SincePart[]> = fc.array(part, { maxLength: 6 })
export const sinceTokens: fc.Arbitrary<string> = sinceParts.map(encodeSinceToken)

export const bookmarks = fc.tuple(text, fc.option(fc.array(oddValue, { maxLength: 3 })))
  .map(([id, key]) => encodeBookmark({ id, ...(key !== null && { key }) }))
