import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { MemoryLog } from '../../src/log/log-memory.ts'
import { PinoLog } from '../../src/log/log-pino.ts'

describe('PinoLog', () => {
  let lines: Record<string, unknown>[]
  const create = (level: 'debug' | 'info' | 'warn' = 'info'): PinoLog =>
    PinoLog.create({
      level, fields: { node: 'node1' }, destination: { write: line => { lines.push(JSON.parse(line)) } },
    })
  beforeEach(() => { lines = [] })

  it('writes JSON lines with level, time, message and the fields of the log and its parents', () => {
    create().child({ requestId: 'r1' }).info({ route: 'document' }, 'served')
    const [{ time, ...line } = {}] = lines
    expect(line).to.deep.equal({ level: 'info', node: 'node1', requestId: 'r1', route: 'document', message: 'served' })
    expect(String(time)).to.match(/^\d{4}-\d\d-\d\dT/)
  })

  it('writes no lines below its level', () => {
    const log = create('warn')
    log.debug({}, 'a')
    log.info({}, 'b')
    log.warn({}, 'c')
    log.error({}, 'd')
    expect(lines.map(line => line['message'])).to.deep.equal(['c', 'd'])
  })

  it('redacts secrets, and writes errors with their stack', () => {
    const fields = {
      password: 'pw', headers: { authorization: 'Basic x', accept: '*/*' },
      request: { headers: { cookie: 'AuthSession=x' } }, error: new Error('broken'),
    }
    create().error(fields, 'no')
    const text = JSON.stringify(lines)
    for (const secret of ['pw', 'Basic x', 'AuthSession']) expect(text).to.not.include(`"${secret}`)
    expect(text).to.include('"accept":"*/*"')
    expect((lines[0]?.['error'] as { message: string; stack: string }).message).to.equal('broken')
    expect((lines[0]?.['error'] as { message: string; stack: string }).stack).to.include('log.test.ts')
  })

  it('writes lines for a person in pretty mode, without the fields that every line has', () => {
    const texts: string[] = []
    const log = PinoLog.create({
      level: 'info', fields: { node: 'node1' }, pretty: true, destination: { write: text => { texts.push(text) } },
    })
    log.warn({ peer: 'node2', password: 'pw' }, 'a peer cannot be reached')
    expect(texts).to.have.length(1)
    expect(texts[0]).to.match(
      /^\[\d\d:\d\d:\d\d\.\d+\] WARN: a peer cannot be reached \{"peer":"node2","password":"\[redacted\]"\}\n$/,
    )
  })

  it('appends to a file, all of it once it is closed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sectional-log-'))
    const file = join(folder, 'logs', 'node.log')
    const log = PinoLog.create({ level: 'info', file })
    for (let index = 0; index < 100; index++) log.info({ index }, 'line')
    await log.close()
    expect(readFileSync(file, 'utf8').trim().split('\n')).to.have.length(100)
    rmSync(folder, { recursive: true })
  })
})

describe('MemoryLog', () => {
  it('keeps lines of children with all their fields', () => {
    const log = new MemoryLog({ node: 'n' })
    log.child({ requestId: 'r' }).warn({ a: 1 }, 'careful')
    log.info({}, 'fine')
    expect(log.lines[0]).to.deep.equal({
      level: 'warn', message: 'careful', fields: { node: 'n', requestId: 'r', a: 1 },
    })
    expect(log.messages('info')).to.deep.equal(['fine'])
  })
})
