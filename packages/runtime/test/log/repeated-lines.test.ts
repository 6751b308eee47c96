import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { MemoryLog } from '../../src/log/log-memory.ts'
import { RepeatedLines } from '../../src/log/repeated-lines.ts'

describe('lines about failures that repeat', () => {
  it('are written at once and then once an interval, with the number of those left out', async () => {
    const clock = new ManualClock()
    const log = new MemoryLog()
    const lines = new RepeatedLines(log, clock, 1000)
    for (let second = 0; second < 3; second++) {
      for (let count = 0; count < 20; count++) {
        lines.warn('full', { shard: count }, 'not stored')
        await clock.advance(50)
      }
    }
    expect(log.lines.map(({ level, message, fields }) => [level, message, fields])).to.deep.equal([
      ['warn', 'not stored', { shard: 0 }], ['warn', 'not stored', { shard: 0, leftOut: 19 }],
      ['warn', 'not stored', { shard: 0, leftOut: 19 }],
    ])
  })

  it('are distinguished by message and kind', () => {
    const log = new MemoryLog()
    const lines = new RepeatedLines(log, new ManualClock())
    for (let count = 0; count < 2; count++) {
      lines.warn('a', {}, 'one')
      lines.warn('b', {}, 'one')
      lines.error('a', {}, 'two')
    }
    expect(log.lines.map(({ level, message }) => `${level} ${message}`)).to.deep.equal([
      'warn one', 'warn one', 'error two',
    ])
  })

  it('need bounded memory, and no line is lost when there are too many kinds', async () => {
    const clock = new ManualClock()
    const log = new MemoryLog()
    const lines = new RepeatedLines(log, clock, 1000)
    for (let kind = 0; kind < 300; kind++) lines.warn(String(kind), {}, 'one')
    expect(log.lines).to.have.lengthOf(300)
    lines.warn('299', {}, 'one')
    expect(log.lines).to.have.lengthOf(301)
    await clock.advance(1000)
    for (let count = 0; count < 2; count++) lines.warn('299', {}, 'one')
    expect(log.lines).to.have.lengthOf(302)
  })
})
