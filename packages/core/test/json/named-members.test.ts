import fc from 'fast-check'
import { expect } from 'chai'
import { arrayElements, NamedMembers } from '../../src/json/named-members.ts'

const name = fc.constantFrom('', 'a', 'ab', 'b"', 'é', '\\', '\n', '__proto__', '0')
const object = fc.uniqueArray(fc.tuple(name, fc.jsonValue({ maxDepth: 3 })), { selector: ([first]) => first })

const text = (members: readonly (readonly [string, unknown])[]): string => (
  `{${members.map(([first, value]) => `${JSON.stringify(first)}:${JSON.stringify(value)}`).join()}}`)

/** Runs a generator to its end. Returns its result, and how often it paused. */
function run<Result>(work: Generator<void, Result>): { readonly result: Result; readonly pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = work.next()
    if (step.done === true) return { result: step.value, pauses }
  }
}

describe('named members of JSON', () => {
  it('are taken, or left out, with all others in their order', () => {
    fc.assert(fc.property(object, fc.uniqueArray(name), (members, names) => {
      const named = new NamedMembers(names)
      const of = (isNamed: boolean): string => text(members.filter(([first]) => names.includes(first) === isNamed))
      const json = Buffer.from(text(members))
      expect(run(named.only(json)).result.toString()).to.equal(of(true))
      expect(`{${run(named.textOfOnly(json)).result}}`).to.equal(of(true))
      expect(run(named.without(json)).result.toString()).to.equal(of(false))
    }), { numRuns: 2000 })
  })

  it('are those of the outermost object, and keep all digits of numbers', () => {
    const json = Buffer.from('{"x":{"n":1},"n":12345678901234567890,"m":1.0}')
    expect(run(new NamedMembers(['n']).only(json)).result.toString()).to.equal('{"n":12345678901234567890}')
    expect(run(new NamedMembers(['n']).without(json)).result.toString()).to.equal('{"x":{"n":1},"m":1.0}')
  })

  it('are no text when they are long', () => {
    const named = new NamedMembers(['a', 'b'])
    const textOf = (length: number): string | undefined =>
      run(named.textOfOnly(Buffer.from(`{"a":1,"c":"${'y'.repeat(100_000)}","b":"${'x'.repeat(length)}"}`))).result
    expect(textOf(65_000)).to.equal(`"a":1,"b":"${'x'.repeat(65_000)}"`)
    expect(textOf(66_000)).to.equal(undefined)
  })

  it('are elements in an array', () => {
    fc.assert(fc.property(fc.array(fc.jsonValue()), values => {
      const { result } = run(arrayElements(Buffer.from(JSON.stringify(values))))
      expect(result.map(element => Buffer.from(element).toString()))
        .to.deep.equal(values.map(value => JSON.stringify(value)))
    }))
  })

  it('are found in slices', () => {
    const list = `[${'{"a":"b"},'.repeat(100_000)}1]`
    const members = `{${Array.from({ length: 100_000 }, (_, index) => `"${index}":${index}`).join()}}`
    for (const json of [`{"x":${list},"n":1}`, members.replace(/}$/, ',"n":1}')]) {
      const { result, pauses } = run(new NamedMembers(['n']).only(Buffer.from(json)))
      expect(result.toString()).to.equal('{"n":1}')
      expect(pauses).to.be.greaterThan(10)
    }
    expect(run(arrayElements(Buffer.from(`[${list}]`))).pauses).to.be.greaterThan(10)
  })
})
