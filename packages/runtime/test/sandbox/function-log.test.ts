import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { MemoryLog } from '../../src/log/log-memory.ts'
import { boundedLines, FunctionLog } from '../../src/sandbox/function-log.ts'
import { functionOf } from './test-sandbox.ts'

describe('the lines that functions log', () => {
  const long = Array.from({ length: 100 }, () => 'x'.repeat(1000))
  let clock: ManualClock
  let log: MemoryLog
  let lines: FunctionLog

  beforeEach(() => {
    clock = new ManualClock()
    log = new MemoryLog()
    lines = new FunctionLog(log, clock)
  })

  const lengthOf = (database: string): number => log.lines
    .filter(({ fields }) => fields['database'] === database)
    .reduce((sum, { fields }) => sum + (fields['line'] as string).length, 0)

  it('are written with their database and design document', () => {
    lines.write(functionOf('', 'db', '_design/d'), ['one', 'two'])
    expect(log.lines.map(({ level, fields }) => [level, fields])).to.deep.equal([
      ['info', { database: 'db', designDocument: '_design/d', line: 'one' }],
      ['info', { database: 'db', designDocument: '_design/d', line: 'two' }],
    ])
  })

  it('are limited for each database and second, and counted when they are left out', async () => {
    for (let call = 0; call < 10; call++) lines.write(functionOf('', 'noisy'), long)
    lines.write(functionOf('', 'quiet'), ['here'])
    expect(lengthOf('noisy')).to.be.within(10_000, 16_384)
    expect(log.lines.at(-1)!.fields).to.include({ line: 'here', leftOut: 1000 - (log.lines.length - 1) })
    await clock.advance(1000)
    lines.write(functionOf('', 'noisy'), ['again'])
    expect(log.lines.at(-1)!.fields).to.deep.equal({ database: 'noisy', designDocument: '_design/d', line: 'again' })
  })

  it('are limited for the node', () => {
    for (let database = 0; database < 100; database++) lines.write(functionOf('', `db${database}`), long)
    expect(log.lines.reduce((sum, { fields }) => sum + (fields['line'] as string).length, 0))
      .to.be.within(200_000, 262_144)
  })

  it('are limited when they are empty, too', () => {
    for (let call = 0; call < 100; call++) lines.write(functionOf(''), Array(100).fill(''))
    expect(log.lines).to.have.length(81)
  })

  it('are cut, and only the first ones of a call are kept', () => {
    const bounded = boundedLines(Array.from({ length: 5000 }, (_, at) => `${at}${'x'.repeat(5000)}`))
    expect([bounded.length, bounded[0]!.length, bounded[99]!.slice(0, 3)]).to.deep.equal([100, 1000, '99x'])
  })
})
