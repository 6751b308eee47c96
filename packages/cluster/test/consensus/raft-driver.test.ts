import { expect } from 'chai'
import { keyNumber, lastKey, ManualClock, MemoryDisk, MemoryStorage, SeededRandom, unsealed } from '@sectional/runtime'
import type { Log, Metrics, Store } from '@sectional/runtime'
import type { LogEntry, RaftMessage } from '@sectional/core'
import { encodeConfiguration } from '../../src/consensus/configuration.ts'
import { defaultRaftDriverOptions, RaftDriver } from '../../src/consensus/raft-driver.ts'
import { RaftStorage } from '../../src/consensus/raft-storage.ts'
import { snapshotChecksum } from '../../src/consensus/snapshot-pieces.ts'
import { DamagedControlStoreError } from '../../src/consensus/sealed-records.ts'

const metric = { add: () => {}, set: () => {}, observe: () => {} }
const metrics: Metrics = {
  counter: () => metric, gauge: () => metric, histogram: () => metric, onCollect: () => {}, render: async () => '',
  samples: async () => [],
}
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('the consensus driver', () => {
  let clock: ManualClock
  let disk: MemoryDisk
  let storage: MemoryStorage
  let store: Store
  let sent: RaftMessage[]
  let fatal: Error[]
  let applied: string[]
  let lines: string[]

  beforeEach(async () => {
    clock = new ManualClock()
    disk = new MemoryDisk(clock)
    storage = new MemoryStorage(disk)
    store = await storage.open('control')
    sent = []
    fatal = []
    applied = []
    lines = []
  })

  const log: Log = {
    debug: () => {}, child: () => log,
    info: (_fields, message) => { lines.push(message) }, warn: (_fields, message) => { lines.push(message) },
    error: (_fields, message) => { lines.push(message) },
  }

  const open = (options: Partial<typeof defaultRaftDriverOptions> = {}): Promise<RaftDriver> => RaftDriver.open({
    node: 'a', clock, random: new SeededRandom(1), log, metrics, store,
    machine: {
      apply: (entry: LogEntry) => {
        const text = new TextDecoder().decode(entry.payload)
        if (text === 'poison') throw new Error('unknown command')
        if (entry.kind === 'command') applied.push(text)
        return applied.length
      },
      snapshot: () => bytes(JSON.stringify(applied)),
      restore: snapshot => { applied = snapshot.state.length === 0
        ? []
        : JSON.parse(new TextDecoder().decode(snapshot.state)) as string[] },
      settled: () => {},
    },
    options: { ...defaultRaftDriverOptions, ...options },
    send: message => { sent.push(message) }, onChange: () => {}, onFatal: error => { fatal.push(error) },
  })

  const bootstrapped = async (options: Partial<typeof defaultRaftDriverOptions> = {}): Promise<RaftDriver> => {
    await store.write(batch => RaftStorage.bootstrap(batch, 'a'))
    const driver = await open(options)
    await clock.advance(3000)
    expect(driver.leads).to.equal(true)
    return driver
  }

  const restart = async (): Promise<void> => {
    storage = storage.crash()
    store = await storage.open('control')
  }

  it('answers a proposal with the result of the state machine', async () => {
    const driver = await bootstrapped()
    const outcome = await driver.propose(bytes('x'), { timeoutMs: 1000 })
    expect(outcome).to.deep.include({ kind: 'applied', result: 1 })
    await driver.stop()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('promises nothing while the disk fails, and goes on when it works again', async () => {
    const driver = await bootstrapped()
    let broken = true
    disk.setFaults({ failWrite: () => broken ? 'io' : undefined })
    let outcome: unknown
    void driver.propose(bytes('x'), { timeoutMs: 10_000 }).then(result => { outcome = result })
    await clock.advance(3000)
    expect(outcome).to.equal(undefined)
    expect(applied).to.deep.equal([])
    broken = false
    await clock.advance(2000)
    expect(outcome).to.deep.include({ kind: 'applied' })
    expect(lines).to.include('the cluster metadata cannot be written; trying again')
    expect(fatal).to.deep.equal([])
    await driver.stop()
  })

  it('sends no vote and no acknowledgement before the disk has it', async () => {
    const driver = await open()
    disk.setFaults({ syncDelayMs: () => 50 })
    driver.step({ type: 'vote-request', from: 'b', to: 'a', term: 5, lastIndex: 3, lastTerm: 1, preVote: false })
    await clock.advance(40)
    expect(sent).to.deep.equal([])
    await clock.advance(20)
    expect(sent.map(message => message.type)).to.deep.equal(['vote-reply'])
    await restart()
    const again = await open()
    again.step({ type: 'vote-request', from: 'c', to: 'a', term: 5, lastIndex: 9, lastTerm: 4, preVote: false })
    await clock.advance(100)
    expect(sent.at(-1)).to.deep.include({ type: 'vote-reply', to: 'c', granted: false })
    await again.stop()
    await driver.stop()
  })

  it('saves nothing when it stops after the disk has refused entries', async () => {
    const driver = await open()
    let writes = 0
    disk.setFaults({ failWrite: () => ++writes === 1 ? 'io' : undefined })
    const entry: LogEntry = {
      index: 1, term: 1, kind: 'configuration', payload: encodeConfiguration({ voters: ['b'], learners: ['a'] }),
    }
    driver.step({
      type: 'append', from: 'b', to: 'a', term: 1, previousIndex: 0, previousTerm: 0, commit: 0, entries: [entry],
      round: 1,
    })
    await clock.advance(1)
    driver.step({
      type: 'append', from: 'b', to: 'a', term: 1, previousIndex: 1, previousTerm: 1, commit: 1, entries: [], round: 2,
    })
    await clock.advance(1)
    await driver.stop()
    await restart()
    const again = await open()
    expect(again.applied).to.equal(0)
    await again.stop()
  })

  it('applies no further entry, and so skips none, after its store was closed', async () => {
    const driver = await open()
    const configuration: LogEntry = {
      index: 1, term: 1, kind: 'configuration', payload: encodeConfiguration({ voters: ['b'], learners: ['a'] }),
    }
    const command = (index: number, text: string): LogEntry => ({
      index, term: 1, kind: 'command', payload: bytes(text),
    })
    const append = (previousIndex: number, commit: number, entries: readonly LogEntry[]): void => {
      driver.step({
        type: 'append', from: 'b', to: 'a', term: 1, previousIndex, previousTerm: previousIndex === 0 ? 0 : 1, commit,
        entries, round: previousIndex + 1,
      })
    }
    append(0, 0, [configuration, command(2, 'one'), command(3, 'two')])
    await clock.advance(1)
    storage.crash()
    append(3, 2, [command(4, 'three')])
    await clock.advance(1)
    append(4, 3, [])
    await clock.advance(1)
    expect(applied).to.deep.equal([])
    expect(fatal).to.deep.equal([])
    await driver.stop()
  })

  it('restores the applied state from snapshot and log', async () => {
    const driver = await bootstrapped({ snapshotEntries: 10, trailingEntries: 3 })
    for (let at = 0; at < 34; at += 1) await driver.propose(bytes(`${at}`), { timeoutMs: 1000 })
    const before = [...applied]
    await driver.stop()
    await restart()
    const again = await open({ snapshotEntries: 10, trailingEntries: 3 })
    expect(applied).to.deep.equal(before)
    await again.stop()
  })

  it('takes larger snapshots more rarely, and continues while one is made', async () => {
    const options = { snapshotEntries: 10, trailingEntries: 3, snapshotFreeBytes: 100 }
    const driver = await bootstrapped(options)
    const written: number[] = []
    const text = 'x'.repeat(90)
    for (let at = 0; at < 400; at += 1) {
      await driver.propose(bytes(text), { timeoutMs: 1000 })
      await clock.advance(1)
      const record = store.getSync('s')
      const index = record
        && (JSON.parse(Buffer.from(unsealed(record)!).toString()) as { readonly index: number }).index
      if (index !== undefined && index !== written.at(-1)) written.push(index)
    }
    // The distance between two snapshots is about as large as the state at the first of them.
    expect(written.length).to.be.within(5, 7)
    for (const [at, index] of written.entries()) {
      if (at > 0) expect(index - written[at - 1]!).to.be.at.least(written[at - 1]! * 0.9 - 4)
    }
    await driver.stop()
    await restart()
    const again = await open(options)
    expect(applied.length).to.equal(400)
    await again.stop()
  })

  it('keeps the previous snapshot while the next one is written, and removes an unfinished one', async () => {
    const options = { snapshotEntries: 5, trailingEntries: 1 }
    const driver = await bootstrapped(options)
    for (let at = 0; at < 8; at += 1) await driver.propose(bytes(`${at}`), { timeoutMs: 1000 })
    await clock.advance(100)
    await driver.stop()
    const keys = async (): Promise<number> => {
      const iterator = store.iterate({ gte: 'c', lt: 'd' })
      const found = await iterator.next(100)
      await iterator.close()
      return found.length
    }
    expect(await keys()).to.equal(1)
    const raft = new RaftStorage(store)
    const { snapshot, log: stored } = await raft.load()
    const state = new Uint8Array(3 * 1024 * 1024).fill(7)
    await raft.stageSnapshot({ ...snapshot, index: stored.lastIndex, state, checksum: null })
    expect(await keys()).to.equal(13)
    await restart()
    const again = new RaftStorage(store)
    expect((await again.load()).snapshot.index).to.equal(snapshot.index)
    expect(await keys()).to.equal(1)
    const staged = await again.stageSnapshot({ ...snapshot, index: stored.lastIndex, state, checksum: null })
    await again.writeSnapshot(staged, { index: stored.lastIndex, term: stored.lastTerm })
    await again.idle()
    expect(await keys()).to.equal(12)
    await restart()
    const last = await new RaftStorage(store).load()
    expect(last.snapshot.state.length).to.equal(state.length)
    expect([last.log.baseIndex, last.log.lastIndex]).to.deep.equal([stored.lastIndex, stored.lastIndex])
  })

  /** The messages of a leader `b`, whose log has a configuration and then entries of `size` bytes, all of term 2. */
  const leaderOf = (driver: RaftDriver, size: number) => {
    const members = { voters: ['b', 'c'], learners: ['a'] }
    const entry = (index: number): LogEntry => index === 1
      ? { index, term: 2, kind: 'configuration', payload: encodeConfiguration(members) }
      : { index, term: 2, kind: 'command', payload: new Uint8Array(size) }
    let round = 0
    return {
      append: (from: number, to: number, commit: number): void => driver.step({
        type: 'append', from: 'b', to: 'a', term: 2, round: ++round, previousIndex: from - 1,
        previousTerm: from === 1 ? 0 : 2, entries: Array.from({ length: to - from + 1 }, (_, at) => entry(from + at)),
        commit,
      }),
      snapshot: (index: number): void => {
        const state = bytes('["newer"]')
        driver.step({
          type: 'snapshot', from: 'b', to: 'a', term: 2, round: ++round, index, snapshotTerm: 2, configuration: members,
          state, offset: 0, totalBytes: state.length, checksum: snapshotChecksum(state),
        })
      },
    }
  }

  const expectTakenOver = async (driver: RaftDriver, index: number): Promise<void> => {
    expect(fatal).to.deep.equal([])
    expect(driver.applied).to.equal(index)
    expect(applied).to.deep.equal(['newer'])
    await driver.stop()
    await restart()
    const again = await open()
    expect(again.applied).to.equal(index)
    expect(applied).to.deep.equal(['newer'])
    await again.stop()
  }

  it('continues behind the snapshot that it has taken over', async () => {
    const driver = await open()
    const leader = leaderOf(driver, 1)
    leader.append(1, 3, 3)
    await clock.advance(10)
    leader.snapshot(300)
    await clock.advance(10)
    leader.append(301, 302, 302)
    await clock.advance(10)
    expect(fatal).to.deep.equal([])
    expect(driver.applied).to.equal(302)
    expect(applied).to.deep.equal(['newer', '\0', '\0'])
    await driver.stop()
  })

  it('measures how long it has lacked committed entries, and begins anew when it has applied those', async () => {
    const driver = await open()
    const leader = leaderOf(driver, 1)
    leader.append(1, 3, 3)
    await clock.advance(1000)
    expect([driver.applied, driver.lagMs]).to.deep.equal([3, 0])
    for (let commit = 10; commit < 60; commit++) {
      leader.append(commit, commit, commit)
      await clock.advance(100)
    }
    expect(driver.lagMs).to.be.within(4800, 5000)
    // A node that applies entries all the time does not lag, although the leader is always ahead of it.
    for (let commit = 60; commit < 110; commit++) {
      leader.append(4, commit - 1, commit)
      await clock.advance(100)
      expect(driver.applied).to.equal(commit - 1)
    }
    expect(driver.lagMs).to.be.at.most(2 * defaultRaftDriverOptions.tickMs + 100)
    leader.append(4, 109, 109)
    await clock.advance(1000)
    expect(driver.lagMs).to.equal(0)
    expect(fatal).to.deep.equal([])
    await driver.stop()
  })

  it('takes over the snapshot of the leader while its own one waits for room on the disk', async () => {
    const driver = await open({ snapshotEntries: 10, trailingEntries: 3 })
    const leader = leaderOf(driver, 1)
    const staged = (): boolean => disk.entries('control').some(([key]) => key.startsWith('c'))
    disk.setFaults({ failWrite: () => staged() ? 'full' : undefined })
    leader.append(1, 20, 1)
    await clock.advance(10)
    leader.append(21, 20, 20)
    await clock.advance(1500)
    expect(driver.writeFailure?.code).to.equal('full')
    leader.snapshot(300)
    await clock.advance(3000)
    disk.setFaults({})
    await clock.advance(3000)
    await expectTakenOver(driver, 300)
  })

  it('takes over the snapshot of the leader while it writes the entry before which its own one is due', async () => {
    const driver = await open({ snapshotLogBytes: 1000 })
    const leader = leaderOf(driver, 1000)
    leader.append(1, 5, 1)
    await clock.advance(10)
    disk.setFaults({ syncDelayMs: () => 50 })
    leader.append(6, 6, 5)
    await clock.advance(20)
    leader.snapshot(300)
    await clock.advance(1000)
    await expectTakenOver(driver, 300)
  })

  it('takes over the snapshot of the leader while its own one takes effect', async () => {
    const driver = await open({ snapshotEntries: 10, trailingEntries: 3 })
    const leader = leaderOf(driver, 1)
    leader.append(1, 20, 1)
    await clock.advance(10)
    const staged = (): boolean => disk.entries('control').some(([key]) => key.startsWith('c'))
    disk.setFaults({ syncDelayMs: () => staged() ? 50 : 0 })
    leader.append(21, 20, 20)
    await clock.advance(20)
    expect([staged(), store.getSync('s')]).to.deep.equal([true, undefined])
    leader.snapshot(300)
    await clock.advance(1000)
    await expectTakenOver(driver, 300)
  })

  const storedChunks = (): number => disk.entries('control').filter(([key]) => key.startsWith('c')).length
  /** Opens a driver whose state has 3 MiB, that is 12 chunks, and whose next snapshot is due after 5 entries. */
  const openLarge = async (): Promise<RaftDriver> => {
    const driver = await open({ snapshotEntries: 5, trailingEntries: 1 })
    applied = ['x'.repeat(3 * 1024 * 1024 - 1000)]
    return driver
  }

  it('keeps on the disk no chunks of failed attempts to write its own snapshot', async () => {
    const driver = await openLarge()
    const leader = leaderOf(driver, 1)
    leader.append(1, 8, 1)
    await clock.advance(10)
    let chunksMax = 4
    disk.setFaults({ failWrite: () => storedChunks() >= chunksMax ? 'full' : undefined })
    leader.append(9, 8, 8)
    for (const chunks of [4, 8, 12]) {
      chunksMax = chunks
      await clock.advance(10_000)
      expect([storedChunks(), driver.writeFailure?.code]).to.deep.equal([chunks, 'full'])
    }
    disk.setFaults({})
    await clock.advance(2000)
    expect([storedChunks(), driver.writeFailure, fatal]).to.deep.equal([12, null, []])
    expect(store.getSync('s')).not.to.equal(undefined)
    await driver.stop()
    await restart()
    const again = await open()
    expect(again.applied).to.equal(8)
    await again.stop()
  })

  it('removes the chunks of its own snapshot when the leader sends a newer one before they are written', async () => {
    const driver = await openLarge()
    const leader = leaderOf(driver, 1)
    leader.append(1, 8, 1)
    await clock.advance(10)
    let full = true
    disk.setFaults({ failWrite: () => full && storedChunks() >= 4 ? 'full' : undefined })
    leader.append(9, 8, 8)
    await clock.advance(5000)
    leader.snapshot(300)
    await clock.advance(5000)
    full = false
    await clock.advance(5000)
    expect(storedChunks()).to.equal(1)
    await expectTakenOver(driver, 300)
  })

  it('stops for good at an entry that it does not understand', async () => {
    const driver = await bootstrapped()
    void driver.propose(bytes('poison'), { timeoutMs: 1000 })
    await clock.advance(10)
    expect(fatal.map(error => error.message)).to.deep.equal(['unknown command'])
    expect(await driver.propose(bytes('y'), { timeoutMs: 1000 })).to.deep.equal({ kind: 'not-leader' })
    await driver.stop()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('does not start when any bit of its log, its vote or its snapshot is not what was written', async () => {
    const driver = await bootstrapped({ snapshotEntries: 3, trailingEntries: 1 })
    for (const text of ['x', 'y', 'z', 'u']) await driver.propose(bytes(text), { timeoutMs: 1000 })
    await driver.stop()
    const entries = await store.iterate({ gte: '', lt: lastKey }).next(100)
    expect(new Set(entries.map(([key]) => key[0]))).to.deep.equal(new Set(['c', 'h', 'l', 's']))
    for (const [key, value] of entries) {
      for (let bit = 0; bit < value.length * 8; bit++) {
        const damaged = Uint8Array.from(value)
        damaged[bit >> 3]! ^= 1 << (bit & 7)
        await store.write(batch => { batch.put(key, damaged) })
        expect(await open().catch((error: unknown) => error)).to.be.instanceOf(DamagedControlStoreError)
      }
      await store.write(batch => { batch.put(key, value) })
    }
    await (await open()).stop()
  })

  it('refuses a store whose parts contradict each other', async () => {
    const driver = await bootstrapped()
    for (let at = 0; at < 3; at += 1) await driver.propose(bytes('x'), { timeoutMs: 1000 })
    await driver.stop()
    await store.write(batch => batch.delete(`l${keyNumber(3)}`))
    expect(String(await open().catch((error: unknown) => error))).to.match(/entry 4 where 3 belongs/)
  })

  it('limits the proposals that wait', async () => {
    const driver = await bootstrapped({ maxPendingProposals: 2 })
    disk.setFaults({ syncDelayMs: () => 100 })
    const outcomes = Promise.allSettled([1, 2, 3].map(at => driver.propose(bytes(`${at}`), { timeoutMs: 5000 })))
    await clock.advance(1000)
    expect((await outcomes).map(outcome => outcome.status)).to.deep.equal(['fulfilled', 'fulfilled', 'rejected'])
    await driver.stop()
  })

  it('does not answer a proposal with the result of the entry that replaced it', async () => {
    const driver = await bootstrapped()
    const index = driver.applied + 1
    disk.setFaults({ syncDelayMs: () => 100 })
    const outcome = driver.propose(bytes('mine'), { timeoutMs: 5000 })
    driver.step({
      type: 'append', from: 'b', to: 'a', term: driver.term + 1, round: 1, previousIndex: index - 1,
      previousTerm: driver.term, commit: index,
      entries: [{ index, term: driver.term + 1, kind: 'command', payload: bytes('theirs') }],
    })
    await clock.advance(1000)
    expect(applied).to.deep.equal(['theirs'])
    expect(await outcome).to.deep.equal({ kind: 'not-leader' })
    expect(await driver.propose(bytes('more'), { timeoutMs: 5000 })).to.deep.equal({ kind: 'not-leader' })
    await driver.stop()
  })

  it('answers at once, when it stops, a read that waits for the disk', async () => {
    const driver = await bootstrapped()
    disk.setFaults({ failWrite: () => 'io' })
    const answers: (number | null)[] = []
    void driver.propose(bytes('x'), { timeoutMs: 60_000 })
    void driver.readIndex(60_000).then(answer => { answers.push(answer) })
    await clock.advance(10)
    expect(answers).to.deep.equal([])
    await driver.stop()
    expect(answers).to.deep.equal([null])
  })

  it('gives up a proposal and a read in time when they are not decided', async () => {
    const driver = await bootstrapped()
    disk.setFaults({ failWrite: () => 'io' })
    const outcome = driver.propose(bytes('x'), { timeoutMs: 500 })
    await clock.advance(500)
    expect(await outcome).to.deep.equal({ kind: 'timeout' })
    await driver.stop()
    expect(await driver.propose(bytes('y'), { timeoutMs: 500 })).to.deep.equal({ kind: 'not-leader' })
  })
})
