import { expect } from 'chai'
import fc from 'fast-check'
import { compareRows, compareUtf8 } from '@sectional/core'
import type { IndexDefinition, RowPlace } from '@sectional/core'
import { MemoryStorage, RealClock, Turns } from '@sectional/runtime'
import type { Store, StoreEntry } from '@sectional/runtime'
import {
  firstPlace, IndexKeys, placesEnd, placeText, readPlace,
} from '../../src/indexes/index-keys.ts'
import { encodeRow } from '../../src/indexes/index-records.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { readRows, type RowPart, type RowReader } from '../../src/indexes/row-reader.ts'
import { RowList } from '../../src/indexes/row-list.ts'
import { RowTree } from '../../src/indexes/row-tree.ts'
import { RowValues } from '../../src/indexes/row-values.ts'
import { buildSummaries } from '../../src/indexes/summary-build.ts'
import { partBytesMax, runRowsMax } from '../../src/indexes/summary-page.ts'
import { type RowChange, updateSummaries } from '../../src/indexes/summary-update.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'concatenate', options: {} }
/** Concatenates values, which shows the rows of a range, how often each was counted, and their order. */
const indexer: Indexer = {
  versionOf: () => '1',
  map: async () => [],
  groupOf: (key, level) => key.slice(0, level),
  reduce: async (_definition, lists) => lists.map(rows => Buffer.concat(rows.map(({ value }) => value))),
  rereduce: async (_definition, lists) => lists.map(values => {
    if (values.some(({ length }) => length === 0)) throw new Error('the value of no rows is reduced')
    return Buffer.concat(values)
  }),
  encodeGroup: (_definition, _row, _level, value) => value,
}
const keys = new IndexKeys(1)
const turns = new Turns(new RealClock())
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

/** Rows in a store with their summaries, and the same rows in a map. */
class Rows {
  readonly store: Store
  readonly model = new Map<string, string>()
  #height = 0

  private constructor(store: Store) {
    this.store = store
  }

  static async open(): Promise<Rows> {
    return new Rows(await new MemoryStorage().open('rows'))
  }

  get height(): number { return this.#height }
  get sorted(): readonly string[] { return [...this.model.keys()].sort(compareUtf8) }

  reader(): RowReader {
    return this.#height === 0
      ? new RowList(this.store, keys, () => {})
      : new RowTree(this.store, keys, this.#height)
  }

  /** Summarises all rows in one pass. */
  async build(): Promise<void> {
    await this.store.clear(keys.pages())
    const parts = { source: this.store, keys, definition, indexer }
    this.#height = await buildSummaries(parts, turns, Infinity, async (key, page) => {
      await this.store.write(batch => batch.put(key, page))
    }, () => {})
  }

  async apply(changes: ReadonlyMap<string, string | null>): Promise<void> {
    const sorted = [...changes].sort(([a], [b]) => compareUtf8(a, b)).map(([place, value]): RowChange =>
      ({ place, value: value === null ? null : Buffer.from(value) }))
    const { pages, height } = this.#height === 0 || sorted.length === 0
      ? { pages: new Map<string, null>(), height: this.#height }
      : await updateSummaries({ source: this.store, keys, height: this.#height, definition, indexer }, turns, sorted)
    await this.store.write(batch => {
      for (const [key, page] of pages) page === null ? batch.delete(key) : batch.put(key, page)
      for (const { place, value } of sorted) {
        if (value === null) batch.delete(keys.row(place))
        else batch.put(keys.row(place), encodeRow(place, value))
      }
    })
    this.#height = height
    for (const [place, value] of changes) value === null ? this.model.delete(place) : this.model.set(place, value)
  }

  /** Compares reads of the range between two places with loops over the rows. */
  async check(from: string, to: string): Promise<void> {
    const reader = this.reader()
    const { sorted } = this
    const within = sorted.filter(place => compareUtf8(place, from) >= 0 && compareUtf8(place, to) < 0)
    const [value] = await new RowValues(indexer, definition).ofRanges([reader.parts({ from, to })])
    expect(text(value!)).to.equal(within.map(place => this.model.get(place)).join(''))
    const before = sorted.filter(place => compareUtf8(place, from) < 0).length
    expect(await reader.countBefore(from)).to.equal(before)
    expect(await reader.placeAt(before)).to.equal(sorted[before] ?? placesEnd)
    expect((await reader.endRow({ from, to }, false))?.place).to.equal(within[0])
    expect((await reader.endRow({ from, to }, true))?.place).to.equal(within.at(-1))
  }

  /** Walks over all runs in both directions. */
  checkRuns(): void {
    if (this.#height === 0) return
    const tree = this.reader() as RowTree
    let run = tree.runAt(firstPlace)
    const runs = [run]
    while (run.to !== placesEnd) runs.push(run = tree.nextRun(run, false))
    let before = 0
    for (const [at, { from, count, before: counted }] of runs.entries()) {
      expect(from).to.equal(at === 0 ? firstPlace : runs[at - 1]!.to)
      expect(counted).to.equal(before)
      before += count
    }
    expect(before).to.equal(this.sorted.length)
    for (const { from, to, before: counted } of runs.toReversed()) {
      expect({ from: run.from, to: run.to, before: run.before }).to.deep.equal({ from, to, before: counted })
      if (from !== firstPlace) run = tree.nextRun(run, true)
    }
  }

  /** The number of pages in the store. */
  async pageCount(): Promise<number> {
    return (await this.pages()).length
  }

  async pages(): Promise<readonly StoreEntry[]> {
    return this.store.iterate(keys.pages()).next(1e6)
  }
}

function placeOf(key: number, document: number): string {
  return placeText({ key: String.fromCharCode(key >> 8, key & 255), id: `d${document}`, number: 0 })
}

describe('places of rows', () => {
  it('have the order of rows, and give the rows back', () => {
    const characters = fc.constantFrom('\0', '\u0001', 'a', '\u00ff')
    const id = fc.string({ unit: fc.constantFrom('\0', '\u0001', 'a', '\uff5e', '😀'), maxLength: 3 })
    const place = fc.record({
      key: fc.string({ unit: characters, maxLength: 3 }), id, number: fc.constantFrom(0, 1, 0x77, 0x78, 1000, 100_000),
    }) as fc.Arbitrary<RowPlace>
    fc.assert(fc.property(place, place, (a, b) => {
      expect(readPlace(placeText(a))).to.deep.equal(a)
      expect(Math.sign(compareUtf8(placeText(a), placeText(b)))).to.equal(Math.sign(compareRows(a, b)))
    }), { numRuns: 5000 })
  })
})

describe('summaries of rows', () => {
  const change = fc.record({
    key: fc.integer({ min: 0, max: 3000 }), document: fc.integer({ min: 0, max: 3 }), removes: fc.boolean(),
  })
  const clearing = fc.record({ from: fc.integer({ min: 0, max: 3000 }), count: fc.integer({ min: 0, max: 2000 }) })
  const steps = fc.array(fc.record({
    changes: fc.array(change, { maxLength: 40, size: 'max' }),
    clearing: fc.option(clearing, { freq: 2 }),
    inserted: fc.option(clearing, { freq: 2 }),
    ranges: fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 3000 })), { maxLength: 6 }),
  }), { maxLength: 6 })

  it('give the same as a loop over the rows, after any changes', async () => {
    await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 5000 }), steps, async (count, work) => {
      const rows = await Rows.open()
      const first = new Map(Array.from({ length: count }, (_, at) =>
        [placeOf(at * 7919 % 3001, at % 3), `[${at}]`] as const))
      await rows.apply(first)
      for (const [from, to] of work[0]?.ranges ?? []) {
        await rows.check(placeOf(from, 1), placeOf(to, 2))
      }
      await rows.build()
      for (const { changes, clearing: cleared, inserted, ranges } of work) {
        const applied = new Map<string, string | null>()
        for (const place of rows.sorted.slice(cleared?.from, (cleared?.from ?? 0) + (cleared?.count ?? 0))) {
          applied.set(place, null)
        }
        for (let at = 0; at < (inserted?.count ?? 0); at++) applied.set(placeOf(inserted!.from, at + 10), `{${at}}`)
        for (const { key, document, removes } of changes) {
          const place = placeOf(key, document)
          if (!removes) applied.set(place, `(${key})`)
          else if (rows.model.has(place)) applied.set(place, null)
        }
        await rows.apply(applied)
        rows.checkRuns()
        await rows.check(firstPlace, placesEnd)
        for (const [from, to] of ranges) await rows.check(placeOf(from, 1), placeOf(to, 2))
      }
    }), { numRuns: 25 })
  }).timeout(60_000)

  it('need few reads, whatever the number of rows', async () => {
    for (const count of [1000, 100_000]) {
      const rows = await Rows.open()
      await rows.apply(new Map(Array.from({ length: count }, (_, at) => [placeOf(at % 65_536, at), '.'])))
      await rows.build()
      let reads = 0
      const counted = {
        getSync: (key: string) => { reads++; return rows.store.getSync(key) },
        iterate: (...parameters: Parameters<Store['iterate']>) => {
          reads += runRowsMax
          return rows.store.iterate(...parameters)
        },
      }
      const tree = new RowTree(counted, keys, rows.height)
      const range = { from: placeOf(1, 0), to: placeOf(900, 0) }
      const [value] = await new RowValues(indexer, definition).ofRanges([tree.parts(range)])
      expect(value!.length).to.be.above(890)
      expect(reads).to.be.below(2 * runRowsMax + 8)
    }
  }).timeout(60_000)

  it('have fewer pages on each level, also when a reduced value is larger than a page may be', async () => {
    const rows = await Rows.open()
    await rows.apply(new Map([[placeOf(0, 0), 'first']]))
    await rows.build()
    for (let round = 1; round <= 4; round++) {
      const value = String(round).repeat(partBytesMax)
      await rows.apply(new Map(Array.from({ length: 2 * round }, (_, at) => [placeOf(at, round), value])))
      await rows.check(firstPlace, placesEnd)
      await rows.check(placeOf(1, 0), placeOf(3, 0))
    }
    expect(rows.height).to.be.at.most(6)
  })

  it('get several levels at once when a batch adds many large values', async () => {
    const rows = await Rows.open()
    await rows.apply(new Map([[placeOf(0, 0), 'first']]))
    await rows.build()
    expect(rows.height).to.equal(1)
    const large = Array.from({ length: 40 }, (_, at) => [placeOf(at, 1), String(at % 10).repeat(partBytesMax)] as const)
    await rows.apply(new Map(large))
    expect(rows.height).to.be.above(3)
    await rows.check(firstPlace, placesEnd)
    await rows.check(placeOf(7, 0), placeOf(30, 0))
  })

  it('are reduced in steps when a range has many parts', async () => {
    const letters = Array.from({ length: 600 }, (_, at) => String.fromCharCode(0x61 + at % 26))
    let mostValues = 0
    const counting: Indexer = {
      ...indexer,
      rereduce: (of, lists) => {
        mostValues = Math.max(mostValues, ...lists.map(({ length }) => length))
        return indexer.rereduce(of, lists)
      },
    }
    async function* parts(): AsyncGenerator<RowPart> {
      for (const letter of letters) yield { kind: 'value', value: Buffer.from(letter) }
    }
    const reduced = await new RowValues(counting, definition).ofRanges([parts(), parts()])
    expect(reduced.map(text)).to.deep.equal([letters.join(''), letters.join('')])
    expect(mostValues).to.be.below(300)
  })

  it('contain only the part of a long key that distinguishes it from the keys before it', async () => {
    const rows = await Rows.open()
    const longPlace = (at: number): string => placeText({ key: `${at}${'x'.repeat(20_000)}`, id: `d${at}`, number: 0 })
    await rows.apply(new Map(Array.from({ length: 300 }, (_, at) => [longPlace(at * 7), '.'])))
    await rows.build()
    await rows.apply(new Map(Array.from({ length: 300 }, (_, at) => [longPlace(at * 7 + 1), '+'])))
    await rows.check(longPlace(30), longPlace(7))
    const bytes = (await rows.pages()).reduce((sum, [key, page]) => sum + key.length + page.length, 0)
    expect(bytes).to.be.below(20_000)
  })

  it('keep no pages of rows that were removed', async () => {
    const rows = await Rows.open()
    const all = Array.from({ length: 60_000 }, (_, at) => placeOf(at, 0))
    await rows.apply(new Map(all.map(place => [place, '.'])))
    await rows.build()
    expect(await rows.pageCount()).to.be.above(20)
    for (let at = 0; at < all.length; at += 1000) {
      await rows.apply(new Map(all.slice(at, at + 1000).map(place => [place, null])))
    }
    expect(await rows.pageCount()).to.equal(rows.height)
    await rows.apply(new Map([[placeOf(5, 5), 'x']]))
    await rows.check(firstPlace, placesEnd)
    for await (const page of readRows(rows.store, keys, { from: firstPlace, to: placesEnd })) {
      expect(page).to.have.length(1)
    }
  }).timeout(60_000)
})
