import fc from 'fast-check'
import { expect } from 'chai'
import { MemberReader } from '../../src/json/member-reader.ts'

/** Returns the value at a path, or the value at which the path ends early. */
function at(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.hasOwn(value, name) ? at((value as Record<string, unknown>)[name], rest) : undefined
}

const notNegative = (number: number): number => number === 0 ? 0 : number

function read(object: unknown, paths: readonly (readonly string[])[]): Record<string, unknown> {
  const members: Record<string, unknown> = {}
  expect(new MemberReader(paths).read(Buffer.from(JSON.stringify(object)), members)).to.equal(true)
  return members
}

const name = fc.constantFrom('', 'a', 'ab', 'b"', 'é', '\\', '\u0001', '\n', '😀', '__proto__', '0')
const paths = fc.array(fc.array(name, { minLength: 1, maxLength: 3 }), { maxLength: 5 })
const scalar = fc.oneof(
  fc.constant(null), fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }).map(notNegative),
  fc.constantFrom(1e21, 123456789012345, 1234567890123456, 5e-324), fc.string({ unit: 'grapheme', maxLength: 80 }),
  fc.constantFrom('"', '\\', 'x'.repeat(100), `${'x'.repeat(70)}"\\"`, '{"a":1}', ',', '}'),
)
const { object } = fc.letrec<{ value: unknown; object: object }>(tie => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
  object: fc.array(fc.tuple(name, tie('value')), { maxLength: 5 }).map(members => Object.fromEntries(members)),
}))

describe('reading some members of JSON', () => {
  it('gives the value at each path', () => {
    fc.assert(fc.property(object, paths, (document, chosen) => {
      const members = read(document, chosen)
      for (const path of chosen) expect(at(members, path)).to.deep.equal(at(document, path))
    }), { numRuns: 2000 })
  })

  it('reads nothing else', () => {
    const document = { a: 1, b: { c: 2, d: 3, e: {} }, f: [] }
    expect(read(document, [['b', 'd'], ['b', 'x'], ['g']])).to.deep.equal({ b: { d: 3 } })
    expect(read({ b: { c: 2 } }, [['b'], ['b', 'd']])).to.deep.equal({ b: { c: 2 } })
    expect(read({}, [['a']])).to.deep.equal({})
    expect(read({ a: 1 }, [])).to.deep.equal({})
  })

  it('ends at the first member that is not accepted', () => {
    const seen: unknown[] = []
    const members: Record<string, unknown> = {}
    const accept = (member: string): boolean => {
      seen.push([member, members[member]])
      return member !== 'b'
    }
    const body = Buffer.from('{"x":[],"a":1,"b":{"c":2},"d":')
    expect(new MemberReader([['d'], ['b', 'c'], ['a']]).read(body, members, accept)).to.equal(false)
    expect(seen).to.deep.equal([['a', 1], ['b', { c: 2 }]])
  })
})
