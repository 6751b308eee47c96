import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { mutatedText, readMutants } from '../mutant-list.ts'

const checkout = fileURLToPath(new URL('../..', import.meta.url))

describe('the list of mutants', () => {
  const mutants = readMutants()

  it('has different names', () => {
    const names = mutants.map(({ name }) => name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([])
  })

  for (const mutant of mutants) {
    it(`has a change ${mutant.name} that still applies`, () => {
      expect(mutant.after).to.not.equal(mutant.before)
      expect(mutatedText(checkout, mutant)).to.include(mutant.after)
    })
  }

  it('refuses a change whose text the file does not have exactly once', () => {
    const stale = { name: 'stale', file: 'package.json', before: 'no such text', after: '', breaks: '' }
    expect(() => mutatedText(checkout, stale)).to.throw('0 times')
    expect(() => mutatedText(checkout, { ...stale, before: '"' })).to.throw('times')
  })
})
