import assert from 'node:assert/strict'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import { RefusalLog } from '../../src/link/refusal-log.ts'

describe('the log of failures of links', () => {
  it('has each failure once a minute at its level, and again at once after a success', async () => {
    const [log, clock] = [new MemoryLog(), new ManualClock()]
    const refusals = new RefusalLog(log, clock)
    const levels = (): readonly string[] => log.lines.map(({ level }) => level)
    refusals.warn('dial b: reset', {}, 'failed')
    await clock.advance(59_999)
    refusals.warn('dial b: reset', {}, 'failed')
    await clock.advance(1)
    refusals.warn('dial b: reset', {}, 'failed')
    assert.deepEqual(levels(), ['warn', 'debug', 'warn'])
    refusals.warn('dial bc: reset', {}, 'failed')
    refusals.forget('dial b')
    refusals.warn('dial bc: reset', {}, 'failed')
    refusals.error('dial b: reset', {}, 'failed')
    assert.deepEqual(levels().slice(3), ['warn', 'debug', 'error'])
  })

  it('remembers a limited number of failures, and forgets the oldest one first', () => {
    const log = new MemoryLog()
    const refusals = new RefusalLog(log, new ManualClock())
    for (let name = 0; name <= 256; name++) refusals.warn(`peer ${name}`, {}, 'failed')
    refusals.warn('peer 1', {}, 'failed')
    refusals.warn('peer 0', {}, 'failed')
    assert.deepEqual(log.lines.slice(-2).map(({ level }) => level), ['debug', 'warn'])
  })
})
