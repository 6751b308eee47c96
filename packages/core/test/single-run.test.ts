import { expect } from 'chai'
import { SingleRun } from '@sectional/core'

describe('single run', () => {
  it('runs again after a run during which it was requested, once for all requests', async () => {
    let runs = 0
    let active = 0
    const work = new SingleRun(async () => {
      runs++
      expect(++active).to.equal(1)
      await Promise.resolve()
      active--
    })
    for (let count = 0; count < 3; count++) work.request()
    await work.running
    expect(runs).to.equal(2)
    expect(work.running).to.equal(undefined)
  })

  it('does not start a second run when its work requests one at once', async () => {
    let runs = 0
    const work: SingleRun = new SingleRun(async () => {
      if (++runs === 1) work.request()
      expect(work.running === undefined).to.equal(runs === 1)
      await Promise.resolve()
    })
    work.request()
    expect(runs).to.equal(1)
    await work.running
    expect(runs).to.equal(2)
  })

  it('loses no request, in whichever turn it comes', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const waiting = ['first']
      const work = new SingleRun(async () => {
        while (waiting.length > 0) {
          waiting.pop()
          await Promise.resolve()
        }
      })
      work.request()
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      waiting.push('second')
      work.request()
      await new Promise(resolve => setImmediate(resolve))
      expect(waiting, `a request after ${turns} turns`).to.deep.equal([])
      expect(work.running).to.equal(undefined)
    }
  })
})
