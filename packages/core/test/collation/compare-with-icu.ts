/**
 * Compares sort keys of random strings, byte for byte, with those of libicu: run `node
 * packages/core/test/collation/compare-with-icu.ts ./icu-root [strings=100000] [seed=1]`. scripts/collation/README.md
 * describes how `icu-root` is built.
 */
import { execFileSync } from 'node:child_process'
import { SortKeyEncoder } from '../../src/index.ts'
import { kinds, RandomStrings } from './random-strings.ts'

const [program, count = '100000', seed = '1'] = process.argv.slice(2)
if (program === undefined) throw new Error('give the path of icu-root')
const random = new RandomStrings(Number(seed))
const names = Object.keys(kinds)
const texts = Array.from({ length: Number(count) }, (_, i) => {
  const text = kinds[names[i % names.length]!]!(random)
  return random.below(2) === 0 ? text : random.variant(text)
})
const input = texts.map(text => Buffer.from(text, 'utf16le').swap16().toString('hex')).join('\n') + '\n'
const keys = execFileSync(program, ['keys'], { input, encoding: 'utf8', maxBuffer: 2 ** 30 }).split('\n')
const encoder = new SortKeyEncoder()
let different = 0
texts.forEach((text, i) => {
  // A tag precedes the key.
  const key = Buffer.from(encoder.encode(text), 'latin1').subarray(1).toString('hex')
  if (key === keys[i]) return
  different++
  if (different > 10) return
  const codePoints = [...text].map(character => character.codePointAt(0)!.toString(16))
  console.log(`${names[i % names.length]}: ${codePoints.join(' ')}\n  ICU  ${keys[i]}\n  here ${key}`)
})
console.log(`${texts.length} strings, ${different} different keys`)
process.exitCode = different > 0 ? 1 : 0
