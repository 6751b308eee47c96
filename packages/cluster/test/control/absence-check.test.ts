import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { AbsenceCheck } from '../../src/control/absence-check.ts'

const intervalMs = 50

describe('the questions to the leader', () => {
  it('are shared by callers until they are sent, and a later caller gets the answer to a later one', async () => {
    const clock = new ManualClock()
    const sent: PromiseWithResolvers<boolean>[] = []
    const check = new AbsenceCheck(clock, intervalMs, () => {
      const question = Promise.withResolvers<boolean>()
      sent.push(question)
      return question.promise
    })
    const first = [check.ask(), check.ask()]
    await clock.advance(0)
    expect(sent).to.have.length(1)
    const second = check.ask()
    sent[0]!.resolve(true)
    expect(await Promise.all(first)).to.deep.equal([true, true])
    await clock.advance(intervalMs)
    expect(sent, 'the first question may have been answered before the second call').to.have.length(2)
    sent[1]!.resolve(false)
    expect(await second).to.equal(false)
    check.stop()
  })

  it('are asked at intervals, and no more after the stop', async () => {
    const clock = new ManualClock()
    let asked = 0
    const check = new AbsenceCheck(clock, intervalMs, async () => { asked++; return true })
    await check.ask()
    const second = check.ask()
    await clock.advance(intervalMs - 1)
    expect(asked).to.equal(1)
    await clock.advance(1)
    expect([await second, asked]).to.deep.equal([true, 2])
    const third = check.ask()
    await clock.advance(1)
    check.stop()
    expect([await third, asked, clock.pendingTimers]).to.deep.equal([false, 2, 0])
  })
})
