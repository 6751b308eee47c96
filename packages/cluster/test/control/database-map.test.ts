import { expect } from 'chai'
import fc from 'fast-check'
import type { DatabaseRecord } from '../../src/control/cluster-state.ts'
import { DatabaseMap } from '../../src/control/database-map.ts'
import { PersistentMap } from '../../src/control/persistent-map.ts'

const key = fc.integer({ min: 0, max: 400 }).map(at => `k${at}`)
const step = fc.oneof(
  fc.record({ put: key, value: fc.nat(5) }),
  fc.record({ remove: key }),
  // Long runs of keys, so that chunks are split, merged and emptied.
  fc.record({ from: fc.nat(400), count: fc.nat(300), put: fc.boolean() }),
)

function sorted<T>(entries: Iterable<readonly [string, T]>): (readonly [string, T])[] {
  return [...entries].sort(([a], [b]) => a < b ? -1 : 1)
}

describe('a persistent map', () => {
  it('equals a Map in the order of its keys, and leaves earlier maps unchanged', () => {
    fc.assert(fc.property(fc.array(step, { maxLength: 60, size: 'max' }), steps => {
      const model = new Map<string, number>()
      let map = PersistentMap.empty<number>()
      const versions: { readonly map: PersistentMap<number>; readonly entries: (readonly [string, number])[] }[] = [
        { map, entries: [] },
      ]
      const put = (name: string, value: number): void => { model.set(name, value); map = map.with(name, value) }
      const remove = (name: string): void => { model.delete(name); map = map.without(name) }
      for (const action of steps) {
        if ('value' in action) put(action.put, action.value)
        else if ('remove' in action) remove(action.remove)
        else for (let at = action.from; at < action.from + action.count; at += 1) action.put
          ? put(`k${at}`, at)
          : remove(`k${at}`)
        versions.push({ map, entries: sorted(model) })
      }
      expect(PersistentMap.from(model).size).to.equal(model.size)
      for (const { map: version, entries } of versions) {
        expect([...version]).to.deep.equal(entries)
        expect(version.size).to.equal(entries.length)
      }
      for (const name of ['k0', 'k7', 'k399', 'none', '']) {
        expect([map.get(name), map.has(name)]).to.deep.equal([model.get(name), model.has(name)])
      }
    }), { numRuns: 60 })
  })

  it('returns the differences between any two maps', () => {
    const manySteps = fc.array(step, { maxLength: 30, size: 'max' })
    fc.assert(fc.property(manySteps, fc.nat(30), fc.boolean(), (steps, first, related) => {
      let map = PersistentMap.empty<number>()
      let before = map
      for (const [at, action] of steps.entries()) {
        if (at === first) before = related ? map : PersistentMap.from(map)
        if ('value' in action) map = map.with(action.put, action.value)
        else if ('remove' in action) map = map.without(action.remove)
        else for (let each = action.from; each < action.from + action.count; each += 1) map = action.put
          ? map.with(`k${each}`, at)
          : map.without(`k${each}`)
      }
      const names = [...new Set([...before.keys(), ...map.keys()])].sort()
        .filter(name => before.get(name) !== map.get(name))
      expect([...map.differences(before)]).to.deep.equal(
        names.map(name => ({ key: name, before: before.get(name), after: map.get(name) })),
      )
    }), { numRuns: 200 })
  })
})

describe('the databases of a cluster state', () => {
  const database = (name: string, incarnation: string): DatabaseRecord => ({
    name, incarnation, partitioned: false, n: 1, shards: [], security: {}, revsLimit: 1, purgedInfosLimit: 1,
    autoPurge: {},
  })

  it('are found by incarnation, also when a name was used again', () => {
    const first = DatabaseMap.from([database('a', 'i1'), database('b', 'i2')])
    const again = first.without('a').with(database('a', 'i3'))
    const replaced = first.with(database('a', 'i4'))
    expect(['i1', 'i2', 'i3'].map(incarnation => DatabaseMap.withIncarnation(again, incarnation)?.name)).to.deep.equal([
      undefined, 'b', 'a',
    ])
    expect(['i1', 'i2', 'i4'].map(incarnation =>
      DatabaseMap.withIncarnation(replaced, incarnation)?.name)).to.deep.equal([undefined, 'b', 'a'])
    expect([...DatabaseMap.changed(first, again)].map(({ before, after }) =>
      [before?.incarnation, after?.incarnation])).to.deep.equal([['i1', 'i3']])
  })

  it('are listed in the order of their names', () => {
    const names = ['b', '_users', 'a/b', 'a', 'a_b', 'a-b']
    let map = DatabaseMap.from([])
    for (const name of names) map = map.with(database(name, `of ${name}`))
    expect([...map.keys()]).to.deep.equal([...names].sort())
  })
})
