import { expect } from 'chai'
import { PasswordRules } from '../../src/users/password-rules.ts'

describe('the rules for passwords', () => {
  const testInTime = (pattern: RegExp, text: string): boolean | null => pattern.test(text)
  const outcome = (text: string, password: string): string | null => {
    try {
      new PasswordRules({ testInTime }).check(password, text)
      return null
    } catch (error) {
      return (error as Error).message
    }
  }
  const refusal = 'Password does not conform to requirements.'
  const misconfigured = 'Server cannot hash passwords at this time.'

  it('must all match, and the first that does not gives the reason', () => {
    const text = '[{".{10,}", "Ten characters at least."}, "[A-Z]+", { "[0-9]" }]'
    expect(outcome(text, 'Short1')).to.equal(`${refusal} Ten characters at least.`)
    expect(outcome(text, 'long enough 1')).to.equal(refusal)
    expect(outcome(text, 'Long enough too')).to.equal(refusal)
    expect(outcome(text, 'Long enough 2')).to.equal(null)
  })

  it('are none in an empty list or an empty text', () => {
    for (const text of ['', '[]', ' [ ] ']) expect(outcome(text, '')).to.equal(null)
  })

  it('have backslashes and quotes like strings of Erlang', () => {
    expect(outcome('["^\\\\d\\"x$"]', '7"x')).to.equal(null)
    expect(outcome('["^\\d$"]', '7')).to.equal(null)
    expect(outcome('["a, {\\"b\\"}]"]', 'a, {"b"}]')).to.equal(null)
  })

  it('refuse every password while the option has another form', () => {
    for (const text of ['not a list', '["a"', '["a" "b"]', '[{}]', '["("]', '[a]', '["a",]', '[{"a", "b", "c"}]']) {
      expect(outcome(text, 'a'), text).to.equal(misconfigured)
    }
  })

  it('are not applied to very long passwords, with which a slow expression would take long', () => {
    expect(outcome('["(.*)*x"]', 'y'.repeat(100_000))).to.equal(`${refusal} At most 512 characters are allowed.`)
    expect(outcome('[]', 'y'.repeat(100_000))).to.equal(null)
  })

  it('refuse a password whose check would block the thread', () => {
    const limits: number[] = []
    const rules = new PasswordRules({ testInTime: (_pattern, _text, msMax) => { limits.push(msMax); return null } })
    expect(() => { rules.check('a', '["(a+)+$"]') }).to.throw(`${refusal} The check took more than 200 ms.`)
    expect(limits).to.deep.equal([200])
  })

  it('are read again when the option changes', () => {
    const rules = new PasswordRules({ testInTime })
    rules.check('a', '["a"]')
    expect(() => { rules.check('a', '["b"]') }).to.throw(refusal)
    rules.check('a', '[]')
  })
})
