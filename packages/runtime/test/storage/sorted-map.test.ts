import { expect } from 'chai'
import fc from 'fast-check'
import { SortedMap } from '../../src/storage/sorted-map.ts'

/** Keys whose order by UTF-8 is that of the numbers, while their order by UTF-16 differs: some are surrogate pairs. */
const key = (number: number): string => String.fromCodePoint(0xf000 + 10 * number)
const operation = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), key: fc.nat(600), value: fc.nat(9) }),
  fc.record({ kind: fc.constant('delete' as const), key: fc.nat(600), value: fc.constant(0) }),
  fc.record({ kind: fc.constant('snapshot' as const), key: fc.nat(600), value: fc.nat(600) }),
)

describe('SortedMap', () => {
  it('agrees with a plain sorted object, and its snapshots do not change', () => {
    fc.assert(fc.property(fc.array(operation, { maxLength: 1500, size: 'max' }), operations => {
      const map = new SortedMap()
      const model = new Map<number, number>()
      const checks: (() => void)[] = []
      for (const { kind, key: number, value } of operations) {
        if (kind === 'set') { map.set(key(number), Buffer.from([value])); model.set(number, value) }
        if (kind === 'delete') { map.delete(key(number)); model.delete(number) }
        if (kind !== 'snapshot') continue
        const [low, high] = [Math.min(number, value), Math.max(number, value)]
        const snapshot = map.snapshot()
        const expected = [...model].filter(([number]) => number >= low && number < high).sort(([a], [b]) => a - b)
          .map(([number, content]) => [key(number), content])
        checks.push(() => {
          const ascending = [...snapshot.ascending(key(low), key(high))].map(([name, content]) => [name, content[0]])
          const descending = [...snapshot.descending(key(low), key(high))].map(([name, content]) => [name, content[0]])
          expect(ascending).to.deep.equal(expected)
          expect(descending).to.deep.equal(expected.toReversed())
        })
      }
      for (const check of checks) check()
      expect(map.size).to.equal(model.size)
      for (let number = 0; number <= 600; number += 7) expect(map.get(key(number))?.[0]).to.equal(model.get(number))
    }), { numRuns: 60 })
  })
})
