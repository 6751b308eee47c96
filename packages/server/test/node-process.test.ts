import { EventEmitter } from 'node:events'
import { fork, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { NodeProcess, type ProcessSystem } from '../src/command-line/node-process.ts'

/** A process that the test ends. Signals are only recorded. */
class FakeProcess extends EventEmitter {
  readonly pid = 1
  readonly signals: string[] = []
  kill(signal: string): boolean { this.signals.push(signal); return true }
}

describe('the process of a node', () => {
  const clock = new ManualClock()
  let folder: string
  let logFile: string
  let reports: string[]
  let reported: () => void

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sectional-'))
    logFile = join(folder, 'node.log')
    reports = []
    reported = () => {}
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
    expect(clock.pendingTimers).to.equal(0)
  })

  function nodeProcess(start: ProcessSystem['fork']): NodeProcess {
    const plan = {
      name: 'n1', folder, configuration: ['n1.ini'], logFile, httpPort: 1, clusterPort: 2, httpsPort: null,
    }
    const report = (line: string): void => {
      reports.push(line)
      reported()
    }
    return new NodeProcess(plan, report, { fork: start, clock })
  }

  function nextReport(): Promise<void> {
    return new Promise(resolve => { reported = resolve })
  }

  /** The system finds no program of this name. */
  const unstartable: ProcessSystem['fork'] = (entryPoint, words, options) =>
    fork(entryPoint, words, { ...options, execPath: join(folder, 'none') })

  it('is started again, ever later, while the system cannot start it', async () => {
    let report = nextReport()
    const node = nodeProcess(unstartable)
    node.start()
    await report
    expect(reports[0]).to.match(/^n1 cannot be started: spawn .*ENOENT; it is started again in 1 s\. Last lines of /)
    report = nextReport()
    await clock.advance(1000)
    await report
    expect(reports[1]).to.match(/^n1 cannot be started: .*; it is started again in 2 s\. /)
    await node.stop()
  })

  it('is no longer waited for when it could not be started', async () => {
    const node = nodeProcess(unstartable)
    node.start()
    await node.stop()
    expect(reports).to.deep.equal([])
  })

  it('is started again when the attempt throws, or the log cannot be opened or read', async () => {
    const started: FakeProcess[] = []
    let isRefused = true
    const node = nodeProcess(() => {
      if (isRefused) throw new Error('spawn ENOMEM')
      const child = new FakeProcess()
      started.push(child)
      return child as unknown as ChildProcess
    })
    writeFileSync(logFile, 'a\nb\n')
    node.start()
    expect(reports).to.deep.equal([
      `n1 cannot be started: spawn ENOMEM; it is started again in 1 s. Last lines of ${logFile}:\n    a\n    b`,
    ])
    rmSync(folder, { recursive: true })
    isRefused = false
    await clock.advance(1000)
    expect(reports[1]).to.match(/^n1 cannot be started: ENOENT: .* in 2 s\. Last lines of .*:\n    \(cannot be read: /)
    expect(started).to.deep.equal([])
    mkdirSync(folder)
    await clock.advance(2000)
    expect(started).to.have.length(1)
    const stopped = node.stop()
    started[0]!.emit('exit', 0, null)
    await stopped
  })

  it('is started again when it has ended, and stopped by a signal', async () => {
    const started: FakeProcess[] = []
    const node = nodeProcess((_entryPoint, words) => {
      expect(words).to.deep.equal(['node', '--config', 'n1.ini'])
      const child = new FakeProcess()
      started.push(child)
      return child as unknown as ChildProcess
    })
    node.start()
    started[0]!.emit('exit', 1, null)
    started[0]!.emit('exit', 1, null)
    expect(reports).to.have.length(1)
    expect(reports[0]).to.match(/^n1 ended with status 1; it is started again in 1 s\. /)
    await clock.advance(1000)
    expect(started).to.have.length(2)
    started[1]!.emit('error', new Error('kill EPERM'))
    expect(reports[1]).to.equal('n1: kill EPERM')
    const stopped = node.stop()
    await clock.advance(20_000)
    expect(started[1]!.signals).to.deep.equal(['SIGTERM', 'SIGKILL'])
    started[1]!.emit('exit', null, 'SIGKILL')
    await stopped
    expect(readFileSync(logFile, 'utf8')).to.equal('')
  })
})
