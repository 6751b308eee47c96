import { expect } from 'chai'
import { TextPattern } from '../../src/selectors/text-pattern.ts'
import { Effort } from '../../src/selectors/effort.ts'
import { testPlainly } from '../../src/selectors/text-pattern.ts'

function fits(pattern: string, text: string): boolean {
  const effort = new Effort('the test')
  return new TextPattern(pattern, effort).test(text, testPlainly, effort)
}

/** Patterns with texts that they match in PCRE, and texts that they do not. */
const patterns: readonly [string, readonly string[], readonly string[]][] = [
  ['(?x) a b # a comment with ) and [\n c', ['abc'], ['a b c', 'ab']],
  ['(?xi)a\\ b[ #]\\#', ['A b #', 'a b##'], ['ab #', 'a bx#']],
  ['(?i)(?s)A.b', ['a\nB'], ['ab']],
  ['^(?P<year>\\d{4})-(?P<same>\\w)\\k<same>$', ['1999-aa'], ['1999-ab']],
  ['a.c', ['abc', 'a\rc', 'a\u2028c'], ['a\nc']],
  ['(?s)a.c', ['a\nc'], []],
  ['end$', ['end', 'end\n'], ['end\n\n', 'end ']],
  ['(?m)^end$', ['x\nend\ny'], ['x end']],
  ['end\\z', ['end'], ['end\n']],
  ['^\\Q.*[a-\\E+$', ['.*[a-', '.*[a--'], ['xx[a-']],
  ['^\\pL\\Q-\\E[a\\Q-\\Ez]$', ['ä-z', 'ä--'], ['ä-b']],
  ['[]a]', [']', 'a'], ['b', '[']],
  ['[^]a]', ['b'], [']', 'a']],
  ['[[:alpha:]_]', ['b', '_'], ['1', ':']],
  ['[[a]+$', ['[a['], ['b']],
  ['\\x{e9}', ['é'], ['e']],
  ['\\e\\a', ['\u001b\u0007'], ['ea']],
  ['a\\hb', ['a b', 'a\tb', 'a\u00a0b'], ['ahb', 'a\nb']],
  ['a\\Hb', ['ahb'], ['a b']],
  ['[\\h,]x', ['\tx', ',x'], ['hx']],
  ['a\\sb', ['a b', 'a\u000bb'], ['a\u00a0b']],
  ['a\\Sb', ['a\u00a0b'], ['a b']],
  ['a\\Nb', ['axb'], ['a\nb']],
  ['^\\pL+$', ['äb'], ['a1']],
  ['a(?#a comment)b', ['ab'], ['a']],
  ['(?i:A)b', ['ab', 'Ab'], ['aB']],
  ['a+?b*?c??', ['ab'], ['b']],
  ['[a+*?]+[*+]', ['+*'], ['b']],
]

/** Patterns that are refused, and a part of the reason. */
const refused: readonly [string, string][] = [
  ['a++', 'possessive quantifier ++'], ['a*+', 'possessive'], ['a?+', 'possessive'], ['a{2,}+', 'possessive'],
  ['(?>a)', 'atomic'], ['(?P>n)', 'recursion'], ['(?R)', 'recursion'], ['(?1)', 'recursion'], ['(?&n)', 'recursion'],
  ['(?(1)a|b)', 'conditions'], ['(?|a)', '(?|'], ['(*UTF8)a', 'verbs'], ['a(?i)b', '(?i) is not supported here'],
  ['(?U)a', '(?U) is not supported'], ['\\Ga', '\\G'], ['a\\Kb', '\\K'], ['\\R', '(?:\\r\\n|\\n|\\r)'],
  ['\\g{1}', '\\g'], ['x\\u0041', '\\x{...}'], ['\\Lx', '\\L'],
  ['(?P<n>a)(?P=n)', '\\k<name>'], ["(?'n'a)", '(?<name>'], ['[[:^alpha:]]', 'negate'], ['\\x{1f600}', 'itself'],
]

describe('a pattern of PCRE', () => {
  for (const [pattern, matching, others] of patterns) {
    it(`${JSON.stringify(pattern)} has the same meaning`, () => {
      for (const text of matching) expect(fits(pattern, text), JSON.stringify(text)).to.equal(true)
      for (const text of others) expect(fits(pattern, text), JSON.stringify(text)).to.equal(false)
    })
  }

  for (const [pattern, reason] of refused) {
    it(`${JSON.stringify(pattern)} is refused with the reason`, () => {
      expect(() => fits(pattern, '')).to.throw(`Bad argument for operator $regex: ${JSON.stringify(pattern)}: `)
        .with.property('message').that.includes(reason)
    })
  }
})
