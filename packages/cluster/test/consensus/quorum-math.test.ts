import { expect } from 'chai'
import fc from 'fast-check'
import { majorityReached, tallyVotes } from '../../src/consensus/quorum-math.ts'
import { majority } from '../../src/quorum/majority.ts'

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const voters = fc.subarray(names)

/** Returns every set of voters that has more than half of them. */
function majorities(all: readonly string[]): string[][] {
  const sets: string[][] = []
  for (let bits = 0; bits < 2 ** all.length; bits += 1) {
    const set = all.filter((_, at) => (bits >> at) % 2 === 1)
    if (set.length * 2 > all.length) sets.push(set)
  }
  return sets
}

describe('majorities', () => {
  it('reach the greatest index that every member of some majority has reached', () => {
    fc.assert(fc.property(voters, fc.dictionary(fc.constantFrom(...names), fc.nat(9)), (all, reached) => {
      const of = (voter: string): number => reached[voter] ?? 0
      const dumb = Math.max(0, ...majorities(all).map(set => Math.min(...set.map(of))))
      expect(majorityReached(all, of)).to.equal(dumb)
    }))
  })

  it('win when all of some majority agree, and lose when no majority can agree any more', () => {
    fc.assert(fc.property(voters, fc.dictionary(fc.constantFrom(...names), fc.boolean()), (all, cast) => {
      const sets = majorities(all)
      const won = sets.some(set => set.every(voter => cast[voter] === true))
      const lost = !sets.some(set => set.every(voter => cast[voter] !== false))
      expect(tallyVotes(all, new Map(Object.entries(cast)))).to.equal(won ? 'won' : lost ? 'lost' : 'pending')
    }))
  })

  it('win with doubtful votes only when every majority has a voter in common with the sound ones that agree', () => {
    const votes = fc.dictionary(fc.constantFrom(...names), fc.boolean())
    fc.assert(fc.property(voters, votes, fc.subarray(names), (all, cast, doubtful) => {
      const sets = majorities(all)
      const sound = all.filter(voter => !doubtful.includes(voter))
      const wins = (agree: (voter: string) => boolean): boolean =>
        sets.some(set => set.every(agree))
          && sets.every(set => set.some(voter => sound.includes(voter) && agree(voter)))
      const won = wins(voter => cast[voter] === true)
      const possible = wins(voter => cast[voter] !== false)
      expect(tallyVotes(all, new Map(Object.entries(cast)), new Set(doubtful))).to.equal(
        won ? 'won' : possible ? 'pending' : 'lost',
      )
    }))
  })

  it('are more than half', () => {
    expect([1, 2, 3, 4, 5].map(majority)).to.deep.equal([1, 2, 2, 3, 3])
  })
})
