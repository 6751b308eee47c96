/**
 * The tests that every `Storage` must pass; each implementation runs them under mocha. Exported as
 * `@sectional/runtime/storage-suite`.
 */
import assert from 'node:assert/strict'
import { clearPageKeys, queuedBytesMax } from './group-commit-store.ts'
import { lastKey, StorageError } from './storage.ts'
import type { Range, Storage, Store, StoreEntry, StoreIterator, StoreOptions } from './storage.ts'

export interface StorageSuiteOptions {
  /** Makes a storage that contains no store. */
  readonly create: () => Promise<Storage>
  /** Removes what `create` made; all stores are closed before. */
  readonly destroy: (storage: Storage) => Promise<void>
  /** Removes the last durable write of a closed store from its disk. */
  readonly loseLastWrite: (storage: Storage, store: string) => Promise<void>
  /** Makes the disk refuse all writes with `io`, or accept them again. */
  readonly refuseWrites: (storage: Storage, refused: boolean) => Promise<void>
}

const everything: Range = { gte: '', lt: lastKey }

/** The storage under test, and one open store of it. */
class Fixture {
  readonly #options: StorageSuiteOptions
  readonly #storeOptions: StoreOptions
  #storage: Storage | undefined
  #store: Store | undefined

  constructor(options: StorageSuiteOptions, storeOptions: StoreOptions) {
    this.#options = options
    this.#storeOptions = storeOptions
  }

  get storage(): Storage {
    assert(this.#storage)
    return this.#storage
  }

  get store(): Store {
    assert(this.#store)
    return this.#store
  }

  async setUp(): Promise<void> {
    this.#storage = await this.#options.create()
    this.#store = await this.#storage.open('documents', this.#storeOptions)
  }

  async tearDown(): Promise<void> {
    await this.store.close()
    await this.#options.destroy(this.storage)
  }

  async reopen(options?: StoreOptions): Promise<void> {
    await this.store.close()
    this.#store = await this.storage.open('documents', { ...this.#storeOptions, ...options })
  }

  loseLastWrite(): Promise<void> {
    return this.#options.loseLastWrite(this.storage, 'documents')
  }

  /** Runs while the disk refuses all writes. */
  async whileRefused(run: () => Promise<void>): Promise<void> {
    await this.#options.refuseWrites(this.storage, true)
    try {
      await run()
    } finally {
      await this.#options.refuseWrites(this.storage, false)
    }
  }

  puts(entries: readonly (readonly [string, string])[]): Promise<void> {
    return this.store.write(batch => {
      for (const [key, value] of entries) batch.put(key, bytes(value))
    })
  }

  list(): Promise<string[]> {
    return drain(this.store.iterate(everything))
  }
}

export function storageSuite(name: string, options: StorageSuiteOptions): void {
  describe(`${name} as a storage`, () => {
    const fixture = new Fixture(options, {})
    storeCases(fixture)
    describe('names', () => names(fixture))
    describe('damage', () => damage(fixture))
  })
  describe(`${name} as a storage whose writes are not synced`, () => {
    const fixture = new Fixture(options, { synced: false })
    storeCases(fixture)
    describe('missing batches', () => missingBatches(fixture))
  })
}

function storeCases(fixture: Fixture): void {
  beforeEach(() => fixture.setUp())
  afterEach(() => fixture.tearDown())
  describe('point reads', () => pointReads(fixture))
  describe('writes', () => writes(fixture))
  describe('group commit', () => groupCommit(fixture))
  describe('closing', () => closing(fixture))
  describe('iteration', () => iteration(fixture))
  describe('iterators', () => iterators(fixture))
  describe('snapshots', () => snapshots(fixture))
  describe('ranges', () => ranges(fixture))
}

function pointReads(fixture: Fixture): void {
  it('find written keys and no others', async () => {
    await fixture.puts([['a', '1'], ['b', '']])
    assert.equal(text(fixture.store.getSync('a')), '1')
    assert.equal(text(fixture.store.getSync('b')), '')
    assert.equal(fixture.store.getSync('c'), undefined)
  })

  it('answer several keys in the order of the request', async () => {
    await fixture.puts([['a', '1'], ['b', '2']])
    const values = await fixture.store.getMany(['b', 'x', 'a', 'b'])
    assert.deepEqual(values.map(value => value && text(value)), ['2', undefined, '1', '2'])
    assert.deepEqual(await fixture.store.getMany([]), [])
  })

  it('keep every byte of values and every character of keys', async () => {
    const every = Uint8Array.from({ length: 256 }, (_, index) => index)
    const characters = [
      '\0', '\x7f', '\x80', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}',
    ]
    const keys = characters.flatMap(first => characters.map(second => `k${first}${second}`))
    await fixture.store.write(batch => { for (const key of keys) batch.put(key, every) })
    for (const key of keys) assert.equal(Buffer.compare(fixture.store.getSync(key) as Uint8Array, every), 0)
    const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual((await fixture.store.iterate({ gte: 'k', lt: 'l' }).next(1000)).map(([key]) => key), sorted)
  })

  it('keep keys that stand for bytes, a character for each, in the order of the bytes', async () => {
    const some = [0, 1, 0x7f, 0x80, 0xff]
    const keys = Array.from({ length: 256 }, (_, first) => some.map(second => Buffer.from([first, second]))).flat()
    await fixture.store.write(batch => { for (const key of keys) batch.put(key.toString('latin1'), key) })
    const found = await fixture.store.iterate(everything).next(2000)
    assert.deepEqual(found.map(([key]) => Buffer.from(key, 'latin1')), keys)
    assert.deepEqual(found.map(([, value]) => Buffer.from(value)), keys)
  })

  it('take values that are views into larger buffers', async () => {
    await fixture.store.write(batch => batch.put('key', bytes('xxvaluexx').subarray(2, 7)))
    assert.equal(text(fixture.store.getSync('key')), 'value')
  })
}

function writes(fixture: Fixture): void {
  it('apply the operations of one batch in order', async () => {
    await fixture.store.write(batch => {
      batch.put('a', bytes('1'))
      batch.put('b', bytes('1'))
      batch.put('a', bytes('2'))
      batch.delete('b')
    })
    assert.deepEqual(await fixture.list(), ['a=2'])
  })

  it('are kept when the store is closed and opened again', async () => {
    await fixture.puts([['a', '1'], ['b', '2']])
    await fixture.store.write(batch => batch.delete('a'))
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['b=2'])
  })

  it('run fill once, at the call', async () => {
    let runs = 0
    const written = fixture.store.write(() => { runs++ })
    assert.equal(runs, 1)
    await written
    assert.equal(runs, 1)
  })
}

function groupCommit(fixture: Fixture): void {
  it('applies concurrent calls in the order of the calls', async () => {
    const calls = Array.from(
      { length: 100 }, (_, index) => fixture.puts([['counter', String(index)], [`k${index}`, '']]),
    )
    await Promise.all(calls)
    assert.equal(text(fixture.store.getSync('counter')), '99')
    assert.equal((await fixture.list()).length, 101)
  })

  it('rejects with the error of fill, and writes nothing of that call but all of the calls beside it', async () => {
    const before = fixture.puts([['before', '']])
    const broken = fixture.store.write(batch => {
      batch.put('broken', bytes(''))
      throw new RangeError('no')
    })
    const after = fixture.puts([['after', '']])
    await assert.rejects(broken, RangeError)
    await Promise.all([before, after])
    assert.deepEqual(await fixture.list(), ['after=', 'before='])
  })

  it('writes the last of the values that calls put as the latest one', async () => {
    const calls = Array.from({ length: 20 }, (_, index) => fixture.store.write(batch => {
      batch.put(`k${index}`, bytes(''))
      batch.putLatest('latest', bytes(String(index)))
      batch.putLatest(`latest ${index % 2}`, bytes('x'.repeat(index)))
    }))
    await Promise.all(calls)
    assert.equal(text(fixture.store.getSync('latest')), '19')
    assert.equal(text(fixture.store.getSync('latest 0')), 'x'.repeat(18))
    assert.equal((await fixture.list()).length, 23)
  })

  it('restores the latest value that a call with an error replaced', async () => {
    const before = fixture.store.write(batch => batch.putLatest('latest', bytes('before')))
    const broken = fixture.store.write(batch => {
      batch.putLatest('latest', bytes('broken once'))
      batch.putLatest('latest', bytes('broken twice'))
      batch.putLatest('never', bytes('broken'))
      throw new RangeError('no')
    })
    const after = fixture.store.write(batch => {
      batch.put('after', bytes(''))
      batch.putLatest('never', bytes('but now'))
    })
    await assert.rejects(broken, RangeError)
    await Promise.all([before, after])
    assert.deepEqual(await fixture.list(), ['after=', 'latest=before', 'never=but now'])
  })

  it('rejects with overloaded when too many writes wait, and recovers', async () => {
    const value = new Uint8Array(queuedBytesMax / 4)
    const calls = Array.from({ length: 8 }, () => outcome(fixture.store.write(batch => batch.put('large', value))))
    assert.deepEqual(await Promise.all(calls), [...Array(4).fill('done'), ...Array(4).fill('overloaded')])
    await fixture.puts([['small', '']])
  })
}

function closing(fixture: Fixture): void {
  it('finishes accepted writes first', async () => {
    const written = Promise.all(Array.from({ length: 50 }, (_, index) => fixture.puts([[`k${index}`, '']])))
    await fixture.reopen()
    await written
    assert.equal((await fixture.list()).length, 50)
  })

  it('refuses everything afterwards', async () => {
    const closed = fixture.store
    await fixture.reopen()
    assert.equal(await outcome(closed.write(() => {})), 'closed')
    assert.equal(await outcome(closed.getMany(['a'])), 'closed')
    assert.equal(await outcome(closed.clear(everything)), 'closed')
    assert.throws(() => closed.getSync('a'), StorageError)
    assert.throws(() => closed.iterate(everything), StorageError)
    await closed.close()
  })
}

const unsortedKeys = ['a', 'aa', 'b', 'b\u0000', 'c', '\u00e4', 'z']
const sortedKeys = ['a', 'aa', 'b', 'b\u0000', 'c', 'z', '\u00e4']

function iteration(fixture: Fixture): void {
  beforeEach(() => fixture.puts(unsortedKeys.map(key => [key, `${key}!`])))

  it('gives entries in byte order, both ways', async () => {
    const all = sortedKeys.map(key => `${key}=${key}!`)
    assert.deepEqual(await fixture.list(), all)
    assert.deepEqual(await drain(fixture.store.iterate(everything, { reverse: true })), all.toReversed())
  })

  it('includes the lower bound and excludes the upper', async () => {
    const range = { gte: 'aa', lt: 'c' }
    assert.deepEqual(await drain(fixture.store.iterate(range, { values: false })), ['aa=', 'b=', 'b\u0000='])
    assert.deepEqual(await drain(fixture.store.iterate(range, { values: false, reverse: true })), [
      'b\u0000=', 'b=', 'aa=',
    ])
    assert.deepEqual(await drain(fixture.store.iterate({ gte: 'b', lt: 'b' })), [])
    assert.deepEqual(await drain(fixture.store.iterate({ gte: 'c', lt: 'b' })), [])
  })

  it('gives values that are UTF-8 as they were written', async () => {
    const values = ['', 'ascii', '\u0000\u007f', 'Zürich', '日本', '\u{1f600}', 'x'.repeat(10_000)]
    await fixture.puts(values.map((value, at) => [`text ${at}`, value]))
    const range = { gte: 'text ', lt: 'text!' }
    const expected = values.map((value, at) => `text ${at}=${value}`)
    assert.deepEqual(await drain(fixture.store.iterate(range, { text: true })), expected)
    assert.deepEqual(await drain(fixture.store.iterate(range, { text: true, reverse: true })), expected.toReversed())
    assert.deepEqual(await drain(fixture.store.iterate(range, { text: true, values: false, limit: 1 })), ['text 0='])
    const snapshot = fixture.store.snapshot()
    assert.deepEqual(await drain(snapshot.iterate(range, { text: true })), expected)
    await snapshot.close()
  })

  it('gives other bytes for values that are not UTF-8 when they are read as texts', async () => {
    await fixture.store.write(batch => batch.put('text', Uint8Array.of(0x41, 0xff, 0x42)))
    const iterator = fixture.store.iterate({ gte: 'text', lt: 'text!' }, { text: true })
    const [[, value]] = await iterator.next(1) as [StoreEntry]
    assert.equal(Buffer.from(value).toString(), 'A\ufffdB')
    assert.equal(value.length, 5)
    await iterator.close()
  })

  it('stops at the limit', async () => {
    assert.deepEqual(await drain(fixture.store.iterate(everything, { limit: 2, values: false })), ['a=', 'aa='])
    assert.deepEqual(await drain(fixture.store.iterate(everything, { limit: 0 })), [])
  })

  it('reads the store as of the call', async () => {
    const iterator = fixture.store.iterate(everything)
    await fixture.store.write(batch => {
      batch.put('0', bytes('new'))
      batch.put('a', bytes('changed'))
      batch.delete('z')
    })
    assert.deepEqual(await drain(iterator), sortedKeys.map(key => `${key}=${key}!`))
    assert.deepEqual((await fixture.list()).slice(0, 2), ['0=new', 'a=changed'])
  })
}

function snapshots(fixture: Fixture): void {
  beforeEach(() => fixture.puts([['a', '1'], ['b', '2'], ['c', '3']]))

  it('show one state to all their reads', async () => {
    const snapshot = fixture.store.snapshot()
    await fixture.store.write(batch => {
      batch.put('a', bytes('changed'))
      batch.delete('b')
      batch.put('d', bytes('new'))
    })
    await fixture.store.clear({ gte: 'c', lt: 'd' })
    assert.equal(text(snapshot.getSync('a')), '1')
    assert.equal(snapshot.getSync('d'), undefined)
    assert.deepEqual(await drain(snapshot.iterate(everything)), ['a=1', 'b=2', 'c=3'])
    assert.deepEqual(await drain(snapshot.iterate(everything, { reverse: true, limit: 2 })), ['c=3', 'b=2'])
    await snapshot.close()
    assert.deepEqual(await fixture.list(), ['a=changed', 'd=new'])
  })

  it('are unusable after they were closed, and can be closed twice', async () => {
    const snapshot = fixture.store.snapshot()
    await snapshot.close()
    await snapshot.close()
    assert.throws(() => snapshot.getSync('a'), { code: 'closed' })
    assert.throws(() => snapshot.iterate(everything), { code: 'closed' })
  })

  it('end their iterators when they are closed', async () => {
    const snapshot = fixture.store.snapshot()
    const iterator = snapshot.iterate(everything)
    await iterator.next(1)
    await snapshot.close()
    await assert.rejects(iterator.next(1), { code: 'closed' })
    await iterator.close()
  })

  it('end when the store is closed', async () => {
    const snapshot = fixture.store.snapshot()
    await fixture.reopen()
    assert.throws(() => snapshot.getSync('a'), { code: 'closed' })
    assert.throws(() => snapshot.iterate(everything), { code: 'closed' })
    await snapshot.close()
  })
}

function iterators(fixture: Fixture): void {
  beforeEach(() => fixture.puts(unsortedKeys.map(key => [key, ''])))

  it('return pages of at most the requested count, and empty ones at the end', async () => {
    const iterator = fixture.store.iterate(everything, { values: false })
    const seen: string[] = []
    for (let page = await iterator.next(3); page.length > 0; page = await iterator.next(3)) {
      assert(page.length <= 3)
      seen.push(...page.map(([key]) => key))
    }
    assert.deepEqual(seen, sortedKeys)
    assert.deepEqual(await iterator.next(3), [])
    await iterator.close()
  })

  it('can be closed before their end, and twice, and are unusable afterwards', async () => {
    const iterator = fixture.store.iterate(everything)
    await iterator.next(1)
    await iterator.close()
    await iterator.close()
    assert.equal(await outcome(iterator.next(1)), 'closed')
  })
}

function ranges(fixture: Fixture): void {
  it('are cleared durably, without other keys', async () => {
    await fixture.puts(['a', 'b1', 'b2', 'c'].map(key => [key, '']))
    await fixture.store.clear({ gte: 'b', lt: 'c' })
    await fixture.store.clear({ gte: 'b', lt: 'c' })
    assert.deepEqual(await fixture.list(), ['a=', 'c='])
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['a=', 'c='])
  })

  it('are cleared when they have more keys than a batch of the clear deletes', async () => {
    const keys = Array.from({ length: 2 * clearPageKeys + 2 }, (_, index) => `b${index}`)
    await fixture.puts(['a', ...keys, 'c'].map(key => [key, '']))
    await fixture.store.clear({ gte: 'b', lt: 'c' })
    assert.deepEqual(await fixture.list(), ['a=', 'c='])
  })

  it('are cleared of the writes that were called before', async () => {
    const writing = fixture.puts([['a', ''], ['b', '']])
    await fixture.store.clear({ gte: 'b', lt: 'c' })
    await writing
    assert.deepEqual(await fixture.list(), ['a='])
  })

  it('are left as they are when the signal has aborted', async () => {
    await fixture.puts([['b', '']])
    const ended = new AbortController()
    const clearing = outcome(fixture.store.clear(everything, ended.signal))
    ended.abort()
    assert.equal(await clearing, 'closed')
    assert.equal(await outcome(fixture.store.compact(everything, ended.signal)), 'closed')
    assert.deepEqual(await fixture.list(), ['b='])
  })

  it('whose clear fails can be cleared later, and no write after the failure is lost', async () => {
    await fixture.puts(['a', 'b1', 'b2', 'c'].map(key => [key, '']))
    await fixture.whileRefused(async () => {
      assert.equal(await outcome(fixture.store.clear({ gte: 'b', lt: 'c' })), 'io')
      assert.equal(fixture.store.failures, 1)
    })
    await fixture.puts([['d', '']])
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['a=', 'b1=', 'b2=', 'c=', 'd='])
    await fixture.store.clear({ gte: 'b', lt: 'c' })
    assert.deepEqual(await fixture.list(), ['a=', 'c=', 'd='])
  })

  it('have an estimated size, and keep their contents when compacted', async () => {
    await fixture.puts(Array.from({ length: 50 }, (_, index) => [`k${index}`, 'x'.repeat(100)]))
    await fixture.store.compact(everything)
    assert(await fixture.store.approximateSize(everything) > 0)
    assert.equal(await fixture.store.approximateSize({ gte: 'x', lt: 'y' }), 0)
    assert.equal((await fixture.list()).length, 50)
  })
}

function names(fixture: Fixture): void {
  it('keep stores apart', async () => {
    const other = await fixture.storage.open('indexes')
    await fixture.puts([['a', '1']])
    assert.equal(other.getSync('a'), undefined)
    await other.close()
  })

  it('exist from the first opening on', async () => {
    assert.equal(await fixture.storage.exists('indexes'), false)
    await (await fixture.storage.open('indexes')).close()
    assert.equal(await fixture.storage.exists('indexes'), true)
  })

  it('can be removed when they are closed', async () => {
    await fixture.storage.remove('indexes')
    const store = await fixture.storage.open('indexes')
    await store.write(batch => batch.put('a', new Uint8Array(1)))
    assert.equal(await outcome(fixture.storage.remove('indexes')), 'locked')
    assert(store.getSync('a') !== undefined)
    await store.close()
    await fixture.storage.remove('indexes')
    assert.equal(await fixture.storage.exists('indexes'), false)
    const empty = await fixture.storage.open('indexes')
    assert.equal(empty.getSync('a'), undefined)
    await empty.close()
  })

  it('belong to one opener until it closes', async () => {
    assert.equal(await outcome(fixture.storage.open('documents')), 'locked')
    await fixture.reopen()
  })

  it('cannot leave the directory', async () => {
    for (const bad of ['', '..', 'a/b', 'A', 'a'.repeat(65)]) await assert.rejects(fixture.storage.open(bad), TypeError)
  })
}

function damage(fixture: Fixture): void {
  it('is not reported when nothing is missing', async () => {
    await fixture.puts([['a', '1']])
    await fixture.reopen({ onDamage: 'report' })
    assert.deepEqual(fixture.store.damage, [])
    await fixture.store.forgetDamage()
    assert.deepEqual(await fixture.list(), ['a=1'])
  })

  it('prevents opening by default, and with onDamage=report is reported until it is forgotten', async () => {
    await fixture.puts([['a', '1']])
    await fixture.puts([['b', '2']])
    await fixture.store.close()
    await fixture.loseLastWrite()
    for (let attempt = 0; attempt < 2; attempt++) {
      assert.equal(await outcome(fixture.storage.open('documents')), 'corrupt')
    }
    for (let attempt = 0; attempt < 2; attempt++) {
      await fixture.reopen({ onDamage: 'report' })
      assert.notDeepEqual(fixture.store.damage, [])
    }
    await fixture.store.forgetDamage()
    assert.deepEqual(fixture.store.damage, [])
    await fixture.puts([['c', '3']])
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['a=1', 'c=3'])
  })
}

function missingBatches(fixture: Fixture): void {
  it('at the end are no damage: earlier batches are there, and writes continue', async () => {
    await fixture.puts([['a', '1']])
    await fixture.puts([['b', '2']])
    await fixture.store.close()
    await fixture.loseLastWrite()
    await fixture.reopen()
    assert.deepEqual([await fixture.list(), fixture.store.damage], [['a=1'], []])
    await fixture.puts([['c', '3']])
    await fixture.store.forgetDamage()
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['a=1', 'c=3'])
  })

  it('are not caused by an opening that is refused because the store is open', async () => {
    await fixture.puts([['a', '1']])
    assert.equal(await outcome(fixture.storage.open('documents', { synced: false })), 'locked')
    await fixture.puts([['b', '2']])
    await fixture.reopen()
    assert.deepEqual(await fixture.list(), ['a=1', 'b=2'])
  })
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

function text(value: Uint8Array | undefined): string {
  return new TextDecoder().decode(value)
}

async function drain(iterator: StoreIterator): Promise<string[]> {
  const entries: StoreEntry[] = []
  for (let page = await iterator.next(2); page.length > 0; page = await iterator.next(2)) entries.push(...page)
  await iterator.close()
  return entries.map(([key, value]) => `${key}=${text(value)}`)
}

/** Returns `done`, or the code of the error. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'done'
  } catch (error) {
    if (error instanceof StorageError) return error.code
    throw error
  }
}
