import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ManualClock } from '../src/clock/clock-manual.ts'
import { MemoryMachine } from '../src/machine/machine-memory.ts'
import { RealMachine } from '../src/machine/machine-real.ts'
import { MemoryNetworkHub } from '../src/network/network-memory.ts'
import { createMemoryRuntime } from '../src/runtime-memory.ts'
import { createRealRuntime } from '../src/runtime-real.ts'
import { MemoryDisk } from '../src/storage/storage-memory.ts'

const value = Buffer.from('key')

describe('a real runtime', () => {
  let folder: string
  beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'sectional-runtime-')) })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('keeps stores and blobs in a folder that only its owner reads, and counts batches', async () => {
    const dataDirectory = join(folder, 'data')
    const runtime = createRealRuntime({ dataDirectory, log: { level: 'silent' } })
    const store = await runtime.storage.open('documents')
    await store.write(batch => batch.put('key', value))
    await store.close()
    const blobs = await runtime.blobs.open('attachments')
    await blobs.close()
    expect(statSync(dataDirectory).mode & 0o777).to.equal(0o700)
    expect(existsSync(join(dataDirectory, 'stores', 'documents', 'CURRENT'))).to.equal(true)
    expect(existsSync(join(dataDirectory, 'blobs', 'attachments'))).to.equal(true)
    expect((await runtime.metrics.samples()).find(({ name }) =>
      name === 'sectional_storage_operations_total')).to.deep.include({ labels: { store: 'documents' }, value: 1 })
    await runtime.close()
  })

  it('closes folders with data that were open to others, and warns when it may not', async () => {
    const lines: string[] = []
    const stores = join(folder, 'stores')
    const blobs = join(folder, 'blobs')
    mkdirSync(stores)
    chmodSync(stores, 0o755)
    symlinkSync('/proc/self/task', blobs)
    const destination = { write: (line: string) => { lines.push(line) } }
    const runtime = createRealRuntime({ dataDirectory: folder, log: { level: 'info', destination } })
    await runtime.close()
    expect(statSync(stores).mode & 0o777).to.equal(0o700)
    expect(lines).to.have.length(1)
    expect(JSON.parse(lines[0]!)).to.include({ level: 'warn', folder: blobs })
  })

  it('says why a folder cannot be made', () => {
    const create = (dataDirectory: string) => () => createRealRuntime({ dataDirectory, log: { level: 'silent' } })
    expect(create('/proc/sectional/data')).to.throw(/ENOENT.*\/proc\/sectional/)
    writeFileSync(join(folder, 'file'), '')
    expect(create(join(folder, 'file', 'data'))).to.throw(/ENOTDIR|EEXIST/)
  })

  it('closes open sockets and listeners when it is closed', async () => {
    const runtime = createRealRuntime({ dataDirectory: folder, log: { level: 'silent' } })
    const anyPort = { host: '127.0.0.1', port: 0 }
    const server = await runtime.http.listen(anyPort, () => {})
    await runtime.network.listen(anyPort, () => {})
    const response = fetch(`http://127.0.0.1:${server.address.port}/`).then(() => 'answered', () => 'cut')
    await runtime.close()
    await server.close(0)
    expect(await response).to.equal('cut')
  })
})

describe('a revoked memory runtime', () => {
  it('has no effect any more, and the next runtime on its disk finds the synced data', async () => {
    const clock = new ManualClock()
    const hub = new MemoryNetworkHub({ clock })
    const disk = new MemoryDisk(clock)
    const first = createMemoryRuntime({ node: 'a', clock, hub, disk })
    const fired: string[] = []
    const store = await first.storage.open('documents')
    await store.write(batch => batch.put('key', value))
    first.clock.setTimer(5, () => fired.push('timer'))
    await first.network.listen({ host: 'a', port: 1 }, () => {})
    await first.http.listen({ host: 'a', port: 2 }, () => {})
    const request = first.http.inject({ target: '/' }).catch(error => error.message)

    first.revoke()
    const ghost = await store.write(batch => batch.put('ghost', value)).catch(error => error.code)
    await clock.advance(10)
    expect([await request, ghost, fired]).to.deep.equal(['the server is gone', 'closed', []])

    const second = createMemoryRuntime({ node: 'a', clock, hub, disk })
    await second.network.listen({ host: 'a', port: 1 }, () => {})
    const reopened = await second.storage.open('documents')
    expect(reopened.getSync('key')).to.not.equal(undefined)
    expect(reopened.getSync('ghost')).to.equal(undefined)
    expect(clock.pendingTimers).to.equal(0)
  })
})

describe('machines', () => {
  it('derive keys as RFC 6070 does', async () => {
    const real = new RealMachine()
    for (const machine of [real, new MemoryMachine(new ManualClock())]) {
      const derived = await machine.pbkdf2('password', 'salt', 2, 20, 'sha1')
      expect(Buffer.from(derived).toString('hex')).to.equal(rfc6070)
    }
    real.close()
  })

  it('test patterns, and stop those that would run forever', () => {
    const machine = new RealMachine()
    try {
      expect(machine.testInTime(/^(ab)+$/u, 'ab'.repeat(1000), 1000)).to.equal(true)
      expect(machine.testInTime(/b/, 'a', 1000)).to.equal(false)
      for (const pattern of [/^(a+)+$/u, /^(a|aa)+$/, /(a*)*\1b/]) {
        expect(machine.testInTime(pattern, `${'a'.repeat(1000)}!`, 50), String(pattern)).to.equal(null)
      }
      expect(machine.testInTime(/b/, 'b', 1000)).to.equal(true)
    } finally {
      machine.close()
    }
  })

  it('report facts about the process', () => {
    const machine = new RealMachine()
    expect(machine.memory().residentBytes).to.be.greaterThan(machine.memory().heapUsedBytes)
    expect(machine.uptime()).to.be.greaterThan(0)
    expect(machine.versions()['node']).to.match(/^\d/)
    expect(machine.eventLoopDelay().p99).to.be.at.least(0)
    const files = machine.openFiles()
    if (files !== null) expect(files).to.be.greaterThan(2)
    machine.close()
  })
})

/** The second test vector of RFC 6070: P = "password", S = "salt", c = 2, dkLen = 20. */
const rfc6070 = 'ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957'
