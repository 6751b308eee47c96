import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync,
} from 'node:fs'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { RealClock } from '../../src/clock/clock-real.ts'
import { sleep, type Timer } from '../../src/clock/clock.ts'
import { SandboxError, type SandboxLimits } from '../../src/sandbox/sandbox.ts'
import { functionOf, openSandbox } from './test-sandbox.ts'

const isLinux = process.platform === 'linux'
const endless = '() => { for (;;); }'
const identity = functionOf('x => x')

describe('the child processes of a sandbox', function () {
  // Processes start and end slowly on a busy machine.
  this.timeout(30_000)
  let opened: ReturnType<typeof openSandbox>
  const open = (limits: Partial<SandboxLimits> = {}) => (opened = openSandbox(limits)).sandbox
  afterEach(() => opened.sandbox.close())

  it('are started by the first call only', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const started = () => childrenOf(process.pid).filter(pid => !before.includes(pid))
    const sandbox = open()
    expect(started()).to.have.length(0)
    await sandbox.call(identity, ['[1]'])
    expect(started()).to.have.length(1)
  })

  it('have an empty environment and no files of the node', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const file = openSync(fileURLToPath(import.meta.url), 'r')
    try {
      await open().call(identity, ['[1]'])
    } finally {
      closeSync(file)
    }
    const child = childrenOf(process.pid).find(pid => !before.includes(pid))
    expect(readFileSync(`/proc/${child}/environ`, 'latin1')).to.equal('')
    const files = readdirSync(`/proc/${child}/fd`).map(name => readlinkSync(`/proc/${child}/fd/${name}`))
    expect(files.filter(path => path.startsWith('/') && path !== '/dev/null')).to.deep.equal([])
  })

  it('have a lower priority than the node', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    await open().call(identity, ['[1]'])
    const [child] = childrenOf(process.pid).filter(pid => !before.includes(pid))
    expect(getPriority(child)).to.equal(Math.min(getPriority() + 5, 19))
  })

  it('ignore signals to the group of processes, and make way for the node when memory is short', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const sandbox = open()
    await sandbox.call(identity, ['[1]'])
    const [child] = childrenOf(process.pid).filter(pid => !before.includes(pid))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(child as number, signal)
    await sandbox.call(identity, ['[2]'])
    expect(isRunning(child as number)).to.equal(true)
    expect(opened.log.lines).to.deep.equal([])
    expect(readFileSync(`/proc/${child}/oom_score_adj`, 'latin1').trim()).to.equal('1000')
  })

  it('end when no call comes for some time, and start again', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const sandbox = open({ idleMs: 50 })
    await sandbox.call(identity, ['[1]'])
    await until(() => childrenOf(process.pid).every(pid => before.includes(pid)))
    expect(await sandbox.call(identity, ['[2]'])).to.deep.equal([{ kind: 'value', json: '2' }])
    expect(opened.log.lines).to.deep.equal([])
  })

  it('are not all given to one database', async () => {
    const sandbox = open({ callMs: 60_000 })
    await sandbox.call(identity, ['[1]'])
    const codes: Promise<string>[] = []
    for (const designDocument of ['_design/a', '_design/b']) {
      codes.push(refusal(sandbox.call(functionOf(endless, 'db', designDocument), ['[]'])).then(({ code }) => code))
      // Calls of one turn would share a message.
      await turn()
    }
    expect(await sandbox.call(functionOf('x => x', 'other'), ['[1]'])).to.have.length(1)
    sandbox.close()
    expect(await Promise.all(codes)).to.deep.equal(['closed', 'closed'])
  })

  it('run the calls of databases that were quick before, while those of many others do not end', async () => {
    for (const childrenMax of [1, 2]) {
      const sandbox = open({ callMs: 2000, childrenMax })
      await sandbox.call(identity, ['[1]'])
      let ended = 0
      const hostile = Array.from({ length: 20 }, async (_, n) => {
        await refusal(sandbox.call(functionOf(endless, `hostile${n}`), ['[]']))
        ended++
      })
      for (let n = 0; n < 4; n++) await sandbox.call(identity, ['[1]'])
      expect(ended, `of ${hostile.length} hostile calls with ${childrenMax} children`).to.be.below(10)
      sandbox.close()
      await Promise.all(hostile)
    }
  })

  it('run the calls of other databases before those of databases that ended a child', async () => {
    const sandbox = open({ callMs: 300, childrenMax: 1 })
    const order: string[] = []
    const run = async (source: string, database: string): Promise<void> => {
      await sandbox.call(functionOf(source, database), ['[]']).catch(() => {})
      order.push(database)
    }
    await run(endless, 'hostile')
    // Another function than the one that ended a child: that one has a child of its own, beside the other calls.
    await Promise.all([run(endless, 'first'), run('() => 1', 'hostile'), run('() => 1', 'last')])
    expect(order).to.deep.equal(['hostile', 'first', 'last', 'hostile'])
  })

  it('are ended after the time of a call when V8 leaves them asleep because memory is short', async function () {
    if (!isLinux) return this.skip()
    // A call whose process is kept from running has four times the time.
    this.timeout(10_000)
    const sandbox = open({ callMs: 3000, heapMiB: 64, childrenMax: 1 })
    const source = '() => { const all = new Map(); for (let n = 0; ; n++) all.set(`key ${n}`, 1) }'
    const { code } = await refusal(sandbox.call(functionOf(source), ['[]']))
    expect(code).to.be.oneOf(['timeout', 'memory'])
  })

  it('run the calls of a database beside those of a function that ended a child', async () => {
    const sandbox = open({ callMs: 500, childrenMax: 1 })
    let ended = 0
    const endlessCalls = Array.from({ length: 4 }, async () => {
      await refusal(sandbox.call(functionOf(endless), ['[]']))
      ended++
    })
    await endlessCalls[0]
    for (let n = 0; n < 10; n++) {
      expect(await sandbox.call(identity, ['[1]'])).to.deep.equal([{ kind: 'value', json: '1' }])
    }
    expect(ended).to.equal(1)
    await Promise.all(endlessCalls)
  })

  it('are ended once by a function that does not end, and run no other call then', async () => {
    const sandbox = open({ callMs: 500, childrenMax: 1 })
    await sandbox.call(identity, ['[1]'])
    const [failure, ...values] = await Promise.all([
      refusal(sandbox.call(functionOf(endless), ['[]'])), ...[2, 3].map(n => sandbox.call(identity, [`[${n}]`])),
    ])
    expect(failure.code).to.equal('timeout')
    expect(values.flat()).to.deep.equal([2, 3].map(n => ({ kind: 'value', json: `${n}` })))
    expect(opened.log.messages('warn')).to.have.length(1)
  })

  it('run calls of a database that ended a child although others keep them busy', async () => {
    const sandbox = open({ callMs: 500, childrenMax: 1 })
    await refusal(sandbox.call(functionOf(endless), ['[]']))
    let isOver = false
    const others = ['first', 'second'].map(async database => {
      const busy = functionOf('() => { const end = Date.now() + 20; while (Date.now() < end); }', database)
      while (!isOver) await sandbox.call(busy, ['[]'])
    })
    for (let n = 0; n < 3; n++) expect(await sandbox.call(identity, ['[1]'])).to.have.length(1)
    isOver = true
    await Promise.all(others)
  })

  it('are left to other functions when none can be started for a function that ended a child', async () => {
    const sandbox = open({ callMs: 500 })
    await refusal(sandbox.call(functionOf(endless), ['[]']))
    await sandbox.call(identity, ['[1]'])
    const { execPath } = process
    try {
      process.execPath = '/missing/node'
      expect((await refusal(sandbox.call(functionOf(endless), ['[]']))).code).to.equal('overloaded')
      expect(await sandbox.call(identity, ['[1]'])).to.have.length(1)
    } finally {
      process.execPath = execPath
    }
  })

  it('are one more for all functions together that ended a child', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const sandbox = open({ callMs: 300, childrenMax: 1 })
    const loop = (database: string): Promise<unknown> => refusal(sandbox.call(functionOf(endless, database), ['[]']))
    for (const database of ['first', 'second']) await loop(database)
    const loops = Promise.all(['first', 'first', 'second', 'second'].map(loop))
    let most = 0
    for (let isOver = false; !isOver;) {
      isOver = await Promise.race([loops.then(() => true), sandbox.call(identity, ['[1]']).then(() => false)])
      most = Math.max(most, childrenOf(process.pid).filter(pid => !before.includes(pid)).length)
    }
    expect(most).to.equal(2)
  })

  it('keep their isolates when a function is called that ended a child', async () => {
    const sandbox = open({ callMs: 250 })
    const counter = functionOf('() => globalThis.count = (globalThis.count ?? 0) + 1', 'other')
    expect((await refusal(sandbox.call(functionOf(endless), ['[]']))).code).to.equal('timeout')
    for (const count of [1, 2, 3]) {
      expect(await sandbox.call(counter, ['[]'])).to.deep.equal([{ kind: 'value', json: String(count) }])
      expect((await refusal(sandbox.call(functionOf(endless), ['[]']))).code).to.equal('timeout')
    }
  })

  it('end an endless call although the node is blocked again and again', async () => {
    const sandbox = open({ callMs: 250 })
    await sandbox.call(identity, ['[1]'])
    let isEnded = false
    const running = refusal(sandbox.call(functionOf(endless), ['[]'])).finally(() => { isEnded = true })
    for (let blocked = 0; blocked < 8 && !isEnded; blocked++) {
      const end = performance.now() + 1200
      while (performance.now() < end);
      await turn()
      await new Promise(resolve => { setTimeout(resolve, 50) })
    }
    expect(isEnded).to.equal(true)
    expect((await running).code).to.equal('timeout')
  })

  it('refuse calls of functions that ended a child, and no others, when too many of these wait', async () => {
    const sandbox = open({ callMs: 500, databaseCallsMax: 2 })
    const loop = async (): Promise<string> => (await refusal(sandbox.call(functionOf(endless), ['[]']))).code
    expect(await loop()).to.equal('timeout')
    const codes = Promise.all([loop(), loop(), loop()])
    expect(await sandbox.call(identity, ['[1]'])).to.deep.equal([{ kind: 'value', json: '1' }])
    expect(await codes).to.deep.equal(['timeout', 'timeout', 'overloaded'])
  })

  it('refuse waiting calls of a function that ends a child when too many of such functions wait already', async () => {
    const sandbox = open({ callMs: 500, databaseCallsMax: 2, childrenMax: 1 })
    const loop = async (source: string): Promise<string> =>
      (await refusal(sandbox.call(functionOf(source), ['[]']))).code
    expect(await loop(endless)).to.equal('timeout')
    const first = Promise.all([loop(endless), loop(endless)])
    const other = '() => { for (;;) {} }'
    const second = Promise.all([loop(other), loop(other)])
    expect(await first).to.deep.equal(['timeout', 'timeout'])
    expect((await second).toSorted()).to.deep.equal(['overloaded', 'timeout'])
  })

  it('are replaced when they are killed, and their calls run once more', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const sandbox = open()
    await sandbox.call(identity, ['[1]'])
    const running = sandbox.call(functionOf('n => { for (let i = 0; i < 1e8; i++); return n }'), ['[1]'])
    await turn()
    const [child] = childrenOf(process.pid).filter(pid => !before.includes(pid))
    process.kill(child as number, 'SIGKILL')
    expect(await running).to.deep.equal([{ kind: 'value', json: '1' }])
    expect(opened.log.messages('warn')).to.deep.equal(['A process that ran functions of design documents ended'])
  })

  it('are not to blame when something else kills them each time, as the system does for lack of memory', async () => {
    opened = openSandbox({}, moduleOf(
      `export default { Isolate: class { constructor() { process.kill(process.pid, 'SIGKILL') } } }`))
    const { code, message } = await refusal(opened.sandbox.call(identity, ['[1]']))
    expect([code, message]).to.deep.equal(
      ['overloaded', 'The system ended the process of the function. Its memory may be short'])
    expect(opened.log.lines.map(({ fields }) => fields['reason'])).to.deep.equal(['killed', 'killed'])
  })

  it('have time to answer after the node, and perhaps they too, were suspended', async function () {
    if (!isLinux) return this.skip()
    const before = childrenOf(process.pid)
    const sandbox = open({ callMs: 250 })
    await sandbox.call(identity, ['[1]'])
    const [child] = childrenOf(process.pid).filter(pid => !before.includes(pid))
    for (const isChildSuspended of [false, true]) {
      const running = sandbox.call(identity, ['[2]'])
      if (isChildSuspended) process.kill(child as number, 'SIGSTOP')
      await turn()
      const end = performance.now() + 1500
      while (performance.now() < end);
      if (isChildSuspended) process.kill(child as number, 'SIGCONT')
      expect(await running).to.deep.equal([{ kind: 'value', json: '2' }])
    }
    expect(opened.log.lines).to.deep.equal([])
  })

  it('end when the process of the node is killed, even within an endless loop', async function () {
    if (!isLinux) return this.skip()
    const program = fileURLToPath(new URL('./endless.child.ts', import.meta.url))
    const node = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(node.stdout, 'data')
    const [child] = childrenOf(node.pid as number)
    expect(child).to.be.a('number')
    node.kill('SIGKILL')
    await until(() => !isRunning(child as number))
  })

  it('are killed when they use too much memory in a way that their heap limit does not stop', async function () {
    if (!isLinux) return this.skip()
    const sandbox = open({ heapMiB: 2048, residentMiB: 150 })
    const flood = functionOf('() => { const all = []; for (;;) all.push(new Array(1000).fill({})) }')
    const error = await refusal(sandbox.call(flood, ['[]']))
    expect([error.code, error.message]).to.deep.equal(['memory', "The function's process used more than 150 MiB"])
    expect(await sandbox.call(identity, ['[1]'])).to.deep.equal([{ kind: 'value', json: '1' }])
  })

  it('keep a bounded number of isolates and functions', async () => {
    const sandbox = open({ childrenMax: 1 })
    for (let n = 0; n < 40; n++) {
      const [outcome] = await sandbox.call(functionOf('n => n', `db${n % 20}`), [`[${n}]`])
      expect(outcome).to.deep.equal({ kind: 'value', json: `${n}` })
    }
    const many = Array.from({ length: 250 }, (_, n) => sandbox.call(functionOf(`() => ${n}`), ['[]']))
    expect((await Promise.all(many)).flat()).to.deep.equal(many.map((_, n) => ({ kind: 'value', json: `${n}` })))
  })

  it('have room for many functions of a design document with large modules', async () => {
    const sandbox = open({ childrenMax: 1, heapMiB: 32 })
    const modules = JSON.stringify({ lib: 'x'.repeat(1024 * 1024) })
    for (let n = 0; n < 40; n++) {
      const called = { ...functionOf(`() => [${n % 20}, require.length]`), modules }
      expect(await sandbox.call(called, ['[]'])).to.deep.equal([{ kind: 'value', json: `[${n % 20},1]` }])
    }
  })

  it('are not filled by a function that does not compile', async () => {
    const sandbox = open({ childrenMax: 1, heapMiB: 16 })
    const counter = functionOf('() => globalThis.n = (globalThis.n ?? 0) + 1')
    expect(await sandbox.call(counter, ['[]'])).to.deep.equal([{ kind: 'value', json: '1' }])
    for (let n = 0; n < 300; n++) {
      expect((await refusal(sandbox.call(functionOf('() => {'), ['[]']))).code).to.equal('compilation')
    }
    // The isolate is the same.
    expect(await sandbox.call(counter, ['[]'])).to.deep.equal([{ kind: 'value', json: '2' }])
  })

  it('answer a call that waits behind slow ones of its message', async () => {
    // All calls together take longer than one may, and one takes a small part of that also on a busy machine.
    const sandbox = open({ callMs: 1000 })
    const slow = functionOf('n => { const end = Date.now() + 150; while (Date.now() < end); return n }')
    const calls = Array.from({ length: 9 }, (_, n) => sandbox.call(slow, [`[${n}]`]))
    expect((await Promise.all(calls)).flat()).to.deep.equal(calls.map((_, n) => ({ kind: 'value', json: `${n}` })))
    expect(opened.log.messages('warn')).to.deep.equal([])
  })
})

describe('a sandbox of child processes', () => {
  let opened: ReturnType<typeof openSandbox>
  afterEach(() => opened.sandbox.close())

  it('bounds the calls of a database, and those that run count', async () => {
    opened = openSandbox({ databaseCallsMax: 2 })
    const calls = [1, 2].map(n => opened.sandbox.call(identity, [`[${n}]`]))
    expect((await refusal(opened.sandbox.call(identity, ['[3]']))).code).to.equal('overloaded')
    const other = opened.sandbox.call(functionOf('x => x', 'other'), ['[4]'])
    expect((await Promise.all([...calls, other])).flat().map(outcome => 'json' in outcome && outcome.json))
      .to.deep.equal(['1', '2', '4'])
    expect(await opened.sandbox.call(identity, ['[5]'])).to.have.length(1)
  })

  it('bounds the bytes of all calls', async () => {
    opened = openSandbox({ waitingBytesMax: 1000 })
    const text = JSON.stringify(['x'.repeat(600)])
    const first = opened.sandbox.call(identity, [text])
    expect((await refusal(opened.sandbox.call(functionOf('x => x', 'other'), [text]))).code).to.equal('overloaded')
    await first
    expect(await opened.sandbox.call(identity, [text])).to.have.length(1)
  })

  it('leaves bytes to databases whose calls were quick', async () => {
    opened = openSandbox({ waitingBytesMax: 1000, callMs: 60_000 })
    await opened.sandbox.call(identity, ['[1]'])
    const text = JSON.stringify(['x'.repeat(600)])
    const running = refusal(opened.sandbox.call(functionOf('x => { for (;;); }', 'hostile'), [text]))
    const small = JSON.stringify(['x'.repeat(200)])
    expect((await refusal(opened.sandbox.call(functionOf('x => x', 'new'), [small]))).code).to.equal('overloaded')
    expect(await opened.sandbox.call(identity, [small])).to.have.length(1)
    opened.sandbox.close()
    expect((await running).code).to.equal('closed')
  })

  it('writes lines of functions to the log', async () => {
    opened = openSandbox()
    await opened.sandbox.map(functionOf('doc => log(doc)'), ['{"n":1}', '"text"'])
    expect(opened.log.lines).to.deep.equal(['{"n":1}', 'text'].map(line => ({
      level: 'info', message: 'A function of a design document logged a line',
      fields: { database: 'db', designDocument: '_design/d', line },
    })))
  })

  it('rejects calls that wait or run when it is closed, and later ones', async () => {
    opened = openSandbox({ callMs: 60_000 })
    const running = refusal(opened.sandbox.call(functionOf(endless), ['[]']))
    await turn()
    const waiting = refusal(opened.sandbox.call(identity, ['[1]']))
    opened.sandbox.close()
    const codes = await Promise.all([running, waiting, refusal(opened.sandbox.compile(identity))])
    expect(codes.map(({ code }) => code)).to.deep.equal(['closed', 'closed', 'closed'])
  })

  it('leaves no timer when it is closed', async () => {
    const pending = new Set<object>()
    class CountingClock extends RealClock {
      override setTimer(ms: number, callback: () => void): Timer {
        const timer = super.setTimer(ms, () => { pending.delete(timer); callback() })
        pending.add(timer)
        return { cancel: () => { pending.delete(timer); timer.cancel() } }
      }
    }
    opened = openSandbox({}, undefined, new CountingClock())
    await opened.sandbox.call(identity, ['[1]'])
    opened.sandbox.close()
    // A check of the children that was planned before takes place.
    await sleep(new RealClock(), 100)
    expect(pending.size).to.equal(0)
  })

  it('says that it is not supported where isolated-vm cannot be loaded', async () => {
    opened = openSandbox({}, 'isolated-vm-of-another-machine')
    for (const n of [1, 2]) {
      const error = await refusal(opened.sandbox.call(identity, [`[${n}]`]))
      expect(error.code).to.equal('unsupported')
      expect(error.message).to.match(/isolated-vm cannot be loaded: .*isolated-vm-of-another-machine/)
    }
  })

  it('cuts the messages of a child process that a function controls, and ends it when they are huge', async () => {
    const received: (readonly [string, number])[] = []
    for (const length of [100_000, 2_000_000]) {
      opened = openSandbox({}, moduleOf(`
        const { stringify } = JSON
        JSON.stringify = value => stringify(value.calls === undefined ? value
          : { calls: value.calls.map(() => ({ status: 'failed', message: 'x'.repeat(${length}) })) })
        export default {}`))
      const { code, message } = await refusal(opened.sandbox.call(identity, ['[1]']))
      received.push([code, message.length])
      opened.sandbox.close()
    }
    expect(received).to.deep.equal([
      ['crashed', 'The call failed: '.length + 2000], ['crashed', 'The function ended its process'.length],
    ])
  })

  it('says that it is not supported where isolated-vm is for another version of Node.js', async () => {
    const message = 'The module was compiled against a different Node.js version using NODE_MODULE_VERSION 108.'
    opened = openSandbox({}, moduleOf(`throw Object.assign(new Error('${message}'), { code: 'ERR_DLOPEN_FAILED' })`))
    for (const n of [1, 2]) {
      const { code, message: shown } = await refusal(opened.sandbox.call(identity, [`[${n}]`]))
      expect([code, shown.includes(message)]).to.deep.equal(['unsupported', true])
    }
  })

  it('runs functions as soon as isolated-vm can be loaded again, for which memory was short', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
    const marker = join(folder, 'short')
    writeFileSync(marker, '')
    const message = 'isolated_vm.node: cannot allocate memory in static TLS block'
    opened = openSandbox({}, moduleOf(`
      import { existsSync } from 'node:fs'
      if (existsSync(${JSON.stringify(marker)})) {
        throw Object.assign(new Error(${JSON.stringify(message)}), { code: 'ERR_DLOPEN_FAILED' })
      }
      const { default: ivm } = await import(${JSON.stringify(import.meta.resolve('isolated-vm'))})
      export default ivm`))
    try {
      expect((await refusal(opened.sandbox.call(identity, ['[1]']))).code).to.equal('overloaded')
      expect(opened.log.lines[0]).to.deep.include({ level: 'warn', fields: { reason: message } })
    } finally {
      rmSync(folder, { recursive: true })
    }
    expect(await opened.sandbox.call(identity, ['[2]'])).to.deep.equal([{ kind: 'value', json: '2' }])
  })

  it('asks callers to try later when no child process can be started, because no function is the cause', async () => {
    opened = openSandbox({}, 'data:text/javascript,process.exit(1)')
    const { code, message } = await refusal(opened.sandbox.call(identity, ['[1]']))
    expect([code, message]).to.deep.equal(
      ['overloaded', 'A process for functions of design documents could not be started'])
  })

  it('asks callers to try later when Node.js throws the error of starting a process, as for too little memory',
    async () => {
      opened = openSandbox()
      const program = process.execPath
      setProgram(`${program}/not-a-folder`)
      const failed = refusal(opened.sandbox.call(identity, ['[1]']))
      await turn().finally(() => setProgram(program))
      expect((await failed).code).to.equal('overloaded')
      expect(await opened.sandbox.call(identity, ['[1]'])).to.have.length(1)
    })
})

function moduleOf(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`
}

/** Sets the program of new child processes. */
function setProgram(path: string): void {
  Object.defineProperty(process, 'execPath', { value: path, configurable: true, enumerable: true, writable: true })
}

async function refusal(promise: Promise<unknown>): Promise<SandboxError> {
  const error = await promise.then(() => new Error('no error'), (thrown: unknown) => thrown)
  if (!(error instanceof SandboxError)) throw error
  return error
}

function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(() => setImmediate(resolve)))
}

/** The test's time limit ends a wait that does not end. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(new RealClock(), 10)
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number)
    .filter(pid => stateOf(pid)?.parent === parent)
}

function isRunning(pid: number): boolean {
  const state = stateOf(pid)?.state
  return state !== undefined && state !== 'Z'
}

function stateOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    // The name of the program, in parentheses, may contain spaces.
    const [state = '', parent] = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /, '').split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}
