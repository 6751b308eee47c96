import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { BuildQueue, buildSliceMs } from '../../src/indexes/build-queue.ts'

const progressMs = 50
const minutes = 60_000

describe('the queue of builds of a busy node', () => {
  const signal = new AbortController().signal

  it('lets a small view begin soon beside many large ones', async () => {
    const clock = new ManualClock()
    const queue = new BuildQueue(clock, () => true, { runningMax: 2, pausedMax: 16 })
    const build = async (group: string, workMs: number): Promise<void> => {
      const turn = await queue.enter(signal, { group, changes: 5000, wasSlow: false })
      for (let left = workMs; left > 0; left -= progressMs) {
        await new Promise<void>(resolve => { clock.setTimer(progressMs, resolve) })
        turn.progressed()
        await turn.giveWay()
      }
      turn.leave()
    }
    for (let view = 0; view < 6; view++) {
      for (let shard = 0; shard < 4; shard++) void build(`large ${view}`, 5 * minutes)
    }
    await clock.advance(minutes)
    for (let view = 0; view < 3; view++) {
      const began = clock.monotonic()
      let took = Infinity
      void build(`small ${view}`, 4 * progressMs).then(() => { took = clock.monotonic() - began })
      await clock.advance(minutes)
      expect(took, `small view ${view}`).to.be.below(20 * buildSliceMs)
    }
  })
})
