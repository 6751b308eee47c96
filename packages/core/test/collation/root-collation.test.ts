import { expect } from 'chai'
import { marksMax } from '../../src/collation/contraction-match.ts'
import { rootCollationVersion, SortKeyEncoder } from '../../src/index.ts'
import { kinds, RandomStrings } from './random-strings.ts'

/** Pairs of strings to compare for each kind. `COLLATION_PAIRS` sets more, `COLLATION_SEED` another seed. */
const pairs = Number.parseInt(process.env['COLLATION_PAIRS'] ?? '', 10) || 1_500
const seed = Number.parseInt(process.env['COLLATION_SEED'] ?? '', 10) || 1

/**
 * The platform's collator. `en-US` has the root order; the locale `und` would be replaced by that of the process. The
 * collator always normalizes, so it is only given strings for which that makes no difference.
 */
const collator = new Intl.Collator('en-US', { sensitivity: 'variant', ignorePunctuation: false })

function decompose(text: string): string {
  return text.normalize('NFD')
}

/** Composes only letters to which no more marks belong: in NFC, marks after a composed letter may be out of order. */
function compose(text: string): string {
  return decompose(text).replace(/\P{M}\p{M}+/gu, letter => {
    const composed = letter.normalize('NFC')
    return [...composed].length === 1 ? composed : letter
  })
}

/** Kinds whose order does not change when Node.js comes with another version of Unicode. */
const stableKinds = new Set(['ASCII', 'accented Latin', 'Hangul'])

/** What `ucol_getSortKey` of ICU 78.3 returns for strings, some of which are not normalized (`icu-root keys`). */
const icuKeys: readonly (readonly [text: string, key: string])[] = [
  ['', '010100'],
  ['a', '2b0105010500'],
  ['Ab', '2b2d010601dc0500'],
  ['r\u00e9sum\u00e9', '4d334f5343330144884288010c00'],
  ['a b-c_d', '2b042d050e2f050a31010b010b00'],
  ['\u0000\u0007', '010100'],
  ['x\u0000y', '595b0106010600'],
  ['col\u00b7lecci\u00f3', '2f474141332f2f3b470143fbb64088010f00'],
  ['\u0438\u0306', '624e0105010500'],
  ['\u0438\u0323\u0306', '624e0145c4010600'],
  ['\u0438\u0323\u0306\u0301', '624e0145c488010700'],
  ['\u0438\u0301\u0323\u0306', '624e014588c4010700'],
  ['a\u0307\u0323', '2b01459cc4010700'],
  ['a\u0323\u0307', '2b0145c49c010700'],
  ['\u1ea5', '2b01458e88010700'],
  ['\u0fb2\u0f71\u0f80', '76b60105010500'],
  ['\u0fb2\u0f39\u0f71\u0f80', '76b4a60145f43805010700'],
  ['\u0e40\u0e01\u0e21', '74067a460107010700'],
  ['\u{1112e}\u{11127}', '77614661150106010600'],
  ['\u304c\u304b\u3099', '7d12120145ae45ae010800'],
  ['\u30fc', '0d950105010500'],
  ['\uac01', '7c0667b30107010700'],
  ['\u1100\u1161\u11a8', '7c0667b30107010700'],
  ['\ua960', '7c65250105010500'],
  ['\u4e00\u9fa5', 'fa0202fd2b040106010600'],
  ['\u3400\u{20000}\u{323b0}', 'fa029afa0212fa024e0107010700'],
  ['\u8c48', 'fc64fe0105010500'],
  ['\u0378', 'fe0433640105010500'],
  ['\u{10ffff}', 'fef7af1e0105010500'],
  ['\ud800', 'fe101a100105010500'],
  ['a\ufffeb', '2b022d0107010700'],
  ['\uffff', 'ffff0105010500'],
  ['\ufdfa', '6794c6ee0304671ac6c6d8030467a8c6f0d8030467e088c6ca011601f0f0f1e0f1f0f0f0e0f0f0f3f0e0f1f0f0f000'],
  ['\u{1f469}\u200d\u{1f680}', '0d31790d4a940106010600'],
  ['\u{1f1eb}\u{1f1f7}', '0ce0df0ce1350106010600'],
  ['\u2460\u00bd', '14140c9916010801dff3e0f300'],
  ['\u{17000}\u{18d1e}', '807d04ada00106010600'],
  ['\ufdd1L\u00b7', '2a02020145fbb6010600'],
]

describe('root collation', () => {
  const encoder = new SortKeyEncoder()
  /** Without the tag. */
  const keyOf = (text: string): string => encoder.encode(text).slice(1)
  let random: RandomStrings

  before(() => {
    random = new RandomStrings(seed)
  })

  for (const [kind, make] of Object.entries(kinds)) {
    it(`orders random pairs as the platform does: ${kind}`, function () {
      const isSameVersion = process.versions['unicode'] === rootCollationVersion.unicode
      if (!isSameVersion && !stableKinds.has(kind)) this.skip()
      this.timeout(10_000 + pairs)
      for (let i = 0; i < pairs; i++) {
        const text = make(random)
        const other = random.below(4) === 0 ? make(random) : random.variant(text)
        const normalize = random.below(2) === 0 ? decompose : compose
        const [a, b] = [normalize(text), normalize(other)]
        const [left, right] = [keyOf(a), keyOf(b)]
        const order = left < right ? -1 : left > right ? 1 : 0
        if (order !== collator.compare(a, b)) expect.fail(`${JSON.stringify([a, b])} compare ${order}`)
      }
    })
  }

  it('makes the same keys as ICU', () => {
    for (const [text, key] of icuKeys) {
      expect(Buffer.from(keyOf(text), 'latin1').toString('hex'), JSON.stringify(text)).to.equal(key)
    }
  })

  it('gives the same key to composed and decomposed letters', () => {
    for (let codePoint = 0xa0; codePoint < 0x30000; codePoint++) {
      if (codePoint === 0xd800) codePoint = 0xe000
      const text = String.fromCodePoint(codePoint)
      const decomposed = text.normalize('NFD')
      if (decomposed !== text) expect(keyOf(decomposed), text).to.equal(keyOf(text))
    }
  })

  it('looks for the next mark of a contraction among marksMax marks', () => {
    const withBreve = (marks: number): string => `\u0438${'\u0326'.repeat(marks)}\u0306`
    const primaryOf = (text: string): string => keyOf(text).split('\x01')[0]!
    expect(primaryOf(withBreve(marksMax - 1))).to.equal(primaryOf('\u0439'))
    expect(primaryOf(withBreve(marksMax))).to.equal(primaryOf('\u0438'))
  })

  it('takes time in proportion to the length of a run of marks, each of which could start a contraction', () => {
    // Without marksMax this would take minutes.
    expect(keyOf('\u0f71'.repeat(200_000)).length).to.be.greaterThan(200_000)
  })
})
