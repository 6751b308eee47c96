import { expect } from 'chai'
import { PatternBudget } from '../../src/selectors/pattern-budget.ts'
import { SelectorError } from '../../src/selectors/selector-error.ts'

class WorkingClock {
  workedMs = 0

  monotonic(): number { return this.workedMs }
}

/** A machine on which each test of a pattern takes `tookMs`. */
class SlowMachine {
  readonly #clock: WorkingClock
  readonly allowed: number[] = []
  tookMs = 0

  constructor(clock: WorkingClock) {
    this.#clock = clock
  }

  testInTime(_pattern: RegExp, _text: string, msMax: number): boolean {
    this.allowed.push(msMax)
    this.#clock.workedMs += Math.min(this.tookMs, msMax)
    return false
  }
}

describe('the time of patterns', () => {
  let clock: WorkingClock
  let machine: SlowMachine
  let budget: PatternBudget
  beforeEach(() => {
    clock = new WorkingClock()
    machine = new SlowMachine(clock)
    budget = new PatternBudget(clock, machine)
  })

  /** Returns the number of documents that pass, each tested with `patterns` patterns, before the budget is used up. */
  function documentsUntilRefusal(patterns: number, documentsMax: number): number {
    for (let document = 0; document < documentsMax; document++) {
      budget.beginDocument()
      try {
        for (let pattern = 0; pattern < patterns; pattern++) budget.testInTime(/x/, '', 200)
      } catch (error) {
        if (error instanceof SelectorError) return document
        throw error
      }
    }
    return documentsMax
  }

  it('is limited for all patterns on one document together', () => {
    machine.tookMs = 30
    expect(documentsUntilRefusal(200, 1)).to.equal(0)
    expect(clock.workedMs).to.be.within(200, 230)
    expect(machine.allowed.at(-1)).to.be.below(30)
  })

  it('is bounded for the whole request', () => {
    machine.tookMs = 10
    expect(documentsUntilRefusal(10, 10_000)).to.be.within(50, 70)
    expect(clock.workedMs).to.be.below(7000)
    budget.beginDocument()
    expect(() => budget.testInTime(/x/, '', 200)).to.throw(SelectorError, 'in this request')
  })

  it('includes the time to compile patterns whose matches are short', () => {
    const compiling = { test: () => { clock.workedMs += 60; return false } } as unknown as RegExp
    const tryMany = (): void => {
      for (let pattern = 0; pattern < 100; pattern++) budget.testInTime(compiling, '', Number.POSITIVE_INFINITY)
    }
    expect(tryMany).to.throw(SelectorError, 'on one document')
    expect(clock.workedMs).to.be.within(600, 1000)
  })

  it('does not run out by one pause of the process', () => {
    const paused = { test: () => { clock.workedMs += 10_000; return false } } as unknown as RegExp
    budget.testInTime(paused, '', Number.POSITIVE_INFINITY)
    expect(budget.testInTime(/x/, 'x', Number.POSITIVE_INFINITY)).to.equal(true)
  })

  it('never runs out while tests are quick, nor in a feed that meets a slow one now and then', () => {
    machine.tookMs = 0.5
    expect(documentsUntilRefusal(20, 10_000)).to.equal(10_000)
    machine.tookMs = 100
    for (let minute = 0; minute < 1000; minute++) {
      expect(documentsUntilRefusal(1, 10)).to.equal(10)
      clock.workedMs += 60_000
    }
  })
})
