import { expect } from 'chai'
import { anticipationMs, FairTurns } from '../../src/sandbox/fair-turns.ts'

describe('fair turns', () => {
  let turns: FairTurns
  let at: number
  beforeEach(() => {
    turns = new FairTurns()
    at = 0
  })

  /** Lets a name take its turn, if it is the next one of those that ask. Returns the name. */
  function takeOne(names: Readonly<Record<string, number>>): string | undefined {
    const name = turns.next(Object.keys(names), at)
    if (name === undefined) return undefined
    turns.began(name, at)
    turns.used(name, names[name]!, at += names[name]!)
    return name
  }

  function take(names: Readonly<Record<string, number>>, count: number): readonly (string | undefined)[] {
    return Array.from({ length: count }, () => takeOne(names))
  }

  it('give each name the same time, and not the same number of turns', () => {
    expect(take({ slow: 50, quick: 10 }, 12).join(' ')).to.equal(
      'slow quick quick quick quick quick slow quick quick quick quick quick')
  })

  it('give a name that begins later no more than the others get from then on', () => {
    take({ first: 10 }, 100)
    expect(take({ second: 10, first: 10 }, 20).filter(name => name === 'first').length).to.be.within(9, 10)
  })

  it('wait a moment for a name that has used less time than the others', () => {
    take({ slow: 500, quick: 1 }, 2)
    expect(takeOne({ slow: 500 })).to.equal(undefined)
    expect(takeOne({ slow: 500, quick: 1 })).to.equal('quick')
    expect(takeOne({ slow: 500 })).to.equal(undefined)
    at += anticipationMs
    expect(takeOne({ slow: 500 })).to.equal('slow')
  })

  it('count the time for which they wait for a name as used by it', () => {
    take({ slow: 500, quick: 1 }, 2)
    let waits = 0
    while (takeOne({ slow: 500, quick: 0 }) === 'quick') {
      waits++
      at += anticipationMs / 2
    }
    expect(waits).to.be.within(40, 60)
  })

  it('have no next one without names', () => {
    expect(takeOne({})).to.equal(undefined)
  })
})
