import { ManualClock, MemoryMachine } from '@sectional/runtime'
import { expect } from 'chai'
import { DesignDocument } from '../../src/contracts/design-document.ts'
import { selectorRule, selectorTest } from '../../src/validation/selector-rules.ts'

describe('a rule that is a selector', () => {
  const rule = (selector: object): ReturnType<typeof selectorRule> => selectorRule(new DesignDocument(
    '_design/rule', '1-a', Buffer.from(JSON.stringify({ language: 'query', validate_doc_update: selector })),
  ))
  const given = (document: object): Buffer => Buffer.from(JSON.stringify([document, null, {}, {}]))

  it('refuses the writes on which its patterns take too long, and no others', () => {
    const clock = new ManualClock()
    const machine = Object.assign(new MemoryMachine(clock), { testInTime: () => null })
    const selector = { $or: [{ 'newDoc.open': true }, { 'newDoc.text': { $regex: '^(a+)+$' } }] }
    const test = selectorTest(rule(selector), { clock, machine })
    expect(test(given({ text: 'a'.repeat(60) }))).to.include({ status: 500, error: 'unknown_error' })
    expect(test(given({ open: true }))).to.equal(undefined)
  })

  it('shows only the beginning of a long condition', () => {
    const clock = new ManualClock()
    const test = selectorTest(rule({ 'newDoc.text': 'x'.repeat(10_000) }), { clock, machine: new MemoryMachine(clock) })
    expect(test(given({}))!.reason).to.have.length.below(400)
  })
})
