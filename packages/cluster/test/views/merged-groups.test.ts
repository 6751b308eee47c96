import { expect } from 'chai'
import type { ReducedGroup } from '@sectional/core'
import type { ViewGroup } from '../../src/contracts/view-query.ts'
import { MergedGroups } from '../../src/views/merged-groups.ts'

const one: readonly ReducedGroup[] = [{ kind: 'group', range: 0, group: 'a', value: Buffer.from('1') }]
const two: readonly ReducedGroup[] = [...one]
const rest = { skip: 0, limit: null }

describe('merged groups', () => {
  it('are made once for the same lists, and anew for others that are equal', async () => {
    const merged = new MergedGroups()
    let merges = 0
    const open = async (
      lists: readonly (readonly ReducedGroup[])[], part: { skip: number; limit: number | null } = rest,
    ): Promise<readonly ViewGroup[]> => {
      const groups: ViewGroup[] = []
      const merge = async function* () {
        yield [{ range: 0, group: 'a', value: Buffer.from(String(++merges)) }]
      }
      for await (const page of merged.open(lists, part, merge)) groups.push(...page)
      return groups
    }
    const texts = async (...call: Parameters<typeof open>): Promise<string> =>
      (await open(...call)).map(({ value }) => String(value)).join()
    expect([await texts([one, two]), await texts([one, two])]).to.deep.equal(['1', '1'])
    expect(await texts([one, [...two]])).to.equal('2')
    expect(await texts([[...one], two])).to.equal('3')
    expect(await texts([one])).to.equal('4')
    expect(await texts([one, two], { skip: 1, limit: null })).to.equal('5')
    expect(await texts([one, two], { skip: 1, limit: 3 })).to.equal('6')
    expect(await texts([one, two], { skip: 1, limit: 3 })).to.equal('6')
    expect(await texts([])).to.equal('')
  })

  it('are not kept when the merge fails', async () => {
    const merged = new MergedGroups()
    const failing = merged.open([one], rest, async function* () { throw new Error('failed') })
    expect(await failing.next().catch((error: unknown) => String(error))).to.equal('Error: failed')
    const groups = merged.open([one], rest, async function* () {
      yield [{ range: 0, group: 'a', value: one[0]!.value }]
    })
    expect((await groups.next()).value).to.have.length(1)
  })

  it('take no more than the limit; those that were used last remain', async () => {
    const value = Buffer.alloc(1000)
    const lists = ['a', 'b', 'c', 'large'].map((group): readonly ReducedGroup[] =>
      [{ kind: 'group', range: 0, group, value: group === 'large' ? Buffer.alloc(5000) : value }])
    // A result takes its list and its groups: two values, and less than a thousand bytes besides.
    const merged = new MergedGroups(6000)
    const made: string[] = []
    const open = async (at: number): Promise<void> => {
      const list = lists[at]!
      for await (const _ of merged.open([list], rest, async function* () {
        made.push(list[0]!.group)
        yield list
      })) { /* The result is read to its end. */ }
    }
    for (const at of [0, 1, 0, 2, 0, 2, 1, 3, 3, 1]) await open(at)
    expect(made.join(' ')).to.equal('a b c b large large')
  })
})
