import { createMemoryRuntime, ManualClock, MemoryLog, PinoLog, type MemoryRuntime } from '@sectional/runtime'
import { defaultValues } from '@sectional/core/options'
import { expect } from 'chai'
import fc from 'fast-check'
import { auditDeclarations } from '../../src/audit/audit-options.ts'
import { AuditStream } from '../../src/audit/audit-stream.ts'
import type { AuditEvent } from '../../src/audit/audit.ts'

const event: AuditEvent = {
  event: 'permission_refused', user: 'ann', address: '10.0.0.1', requestId: 'r1', details: { path: '/db', status: 403 },
}

describe('the audit stream', () => {
  let runtime: MemoryRuntime
  let options: { -readonly [Name in keyof typeof defaults]: typeof defaults[Name] }
  let stream: AuditStream
  const log = (): MemoryLog => runtime.log as MemoryLog
  const defaults = defaultValues(auditDeclarations)
  beforeEach(() => {
    runtime = createMemoryRuntime({ clock: new ManualClock(), log: new MemoryLog() })
    options = { ...defaults, auditOutput: 'file' }
    stream = new AuditStream({ runtime, node: 'n1', options })
  })
  const text = (): string => runtime.appendFiles.files.get('audit.log') ?? ''
  const lines = (): any[] => text().split('\n').slice(0, -1).map(line => JSON.parse(line))

  it('is off by default', async () => {
    options.auditOutput = defaults.auditOutput
    stream.record(event)
    await stream.stop()
    expect([text(), log().lines]).to.deep.equal(['', []])
  })

  it('has one object in a line, with time, node, event, origin and details', async () => {
    stream.record(event)
    await stream.stop()
    expect(lines()).to.deep.equal([{
      time: '2025-01-01T00:00:00.000Z', node: 'n1', event: 'permission_refused', user: 'ann', address: '10.0.0.1',
      request: 'r1', details: { path: '/db', status: 403 },
    }])
  })

  it('can be written to the log, and be limited to some events', async () => {
    options.auditOutput = 'log'
    options.auditEvents = ['permission_refused']
    stream.record(event)
    stream.record({ ...event, event: 'user_changed' })
    expect(log().lines.map(({ message, fields }) => [message, (fields as any).audit.event]))
      .to.deep.equal([['audit', 'permission_refused']])
    expect(text()).to.equal('')
  })

  it('is in the log at every level of it, which can be changed over HTTP', async () => {
    for (const level of ['error', 'silent'] as const) {
      const written: any[] = []
      const own = PinoLog.create({ level, destination: { write: line => { written.push(JSON.parse(line)) } } })
      const inLog = { ...options, auditOutput: 'log' } as const
      new AuditStream({ runtime: { ...runtime, log: own }, node: 'n1', options: inLog }).record(event)
      own.info({}, 'another line')
      expect(written.map(({ message, audit }) => [message, audit.event])).to.deep.equal([['audit', event.event]])
    }
  })

  it('cannot be forged by texts of clients, which are cut off', async () => {
    const unit = fc.oneof(fc.string(), fc.constantFrom(
      '\n', '\r', '"', '\\', '\u2028', '\u0085', '\u001b', '\ud800', '{',
    ))
    await fc.assert(fc.asyncProperty(fc.array(unit).map(parts => parts.join('')), async name => {
      runtime.appendFiles.files.clear()
      stream.record({ ...event, user: name, details: { name, names: [name] } })
      await stream.stop()
      expect(text()).to.match(/^[\x20-\x7e]+\n$/)
      const [line] = lines()
      const cut = name.length > 256 ? `${name.slice(0, 256)}...` : name
      expect([line.user, line.details]).to.deep.equal([cut, { name: cut, names: [cut] }])
    }))
    const names = Array.from({ length: 1000 }, () => 'x'.repeat(10_000))
    stream.record({ ...event, user: 'x'.repeat(1_000_000), details: { names } })
    await stream.stop()
    expect(text().length).to.be.below(10_000)
  })

  it('neither waits for a slow disk nor grows without a bound, and tells how many lines were lost', async () => {
    const { promise: ready, resolve: go } = Promise.withResolvers<void>()
    runtime.appendFiles.beforeAppend = () => ready
    options.auditBufferBytes = 2000
    for (let index = 0; index < 1000; index++) stream.record({ ...event, details: { index } })
    expect(log().lines.map(({ level, message }) => [level, message]))
      .to.deep.equal([['error', 'lines of the audit stream are lost']])
    go()
    await stream.stop()
    stream.record({ ...event, details: { index: 1000 } })
    await stream.stop()
    const written = lines()
    const kept = written.filter(({ event: name }) => name !== 'lines_lost').map(({ details }) => details.index)
    const told = written.filter(({ event: name }) => name === 'lines_lost').map(({ details }) => details.count)
    expect(kept.length).to.be.within(5, 20)
    expect(kept.slice(0, -1)).to.deep.equal(kept.slice(0, -1).map((_, index) => index))
    expect(kept.at(-1)).to.equal(1000)
    expect(told).to.deep.equal([1001 - kept.length])
    expect(await metric('sectional_audit_lines_lost_total')).to.equal(told[0])
    expect(await metric('sectional_audit_lines_total')).to.equal(kept.length)
  })

  it('goes on after a full disk with the number of lost lines first', async () => {
    runtime.appendFiles.beforeAppend = async () => { throw new Error('ENOSPC') }
    for (let index = 0; index < 3; index++) {
      stream.record(event)
      await stream.stop()
    }
    runtime.appendFiles.beforeAppend = async () => {}
    stream.record(event)
    await stream.stop()
    expect(lines().map(({ event: name, details }) => [name, details.count]))
      .to.deep.equal([['lines_lost', 3], ['permission_refused', undefined]])
    expect(log().lines).to.have.length(1)
  })

  const metric = async (name: string): Promise<number | undefined> =>
    (await runtime.metrics.samples()).find(sample => sample.name === name)?.value
})
