import assert from 'node:assert/strict'
import {
  builtInReduce, decodeViewRow, encodeReducedJson, indexId, partitionPrefix, SortKeyEncoder, viewRowValue,
} from '@sectional/core'
import type {
  GroupPlace, IndexDefinition, IndexRow, ReducedGroup, ReduceIndexRequest, RowBound, RowRange,
} from '@sectional/core'
import { SeededRandom } from '@sectional/runtime'
import { collect, context, edit } from '../../shard-world.ts'
import { JavaScriptWorld, viewOf } from './javascript-world.ts'

const custom = '(keys, values, rereduce) => rereduce ? sum(values) : values.length * 1000 + sum(values)'
const reduces = [
  '_count', '_sum', '_stats', '_approx_count_distinct', '_first', '_last', '_top_3', '_bottom_5', custom,
]
const map = 'doc => { for (const [key, value] of doc.rows) emit(key, value) }'
const partitioned = { partitioned: true }
const encoder = new SortKeyEncoder()

type Request = Omit<ReduceIndexRequest, 'index' | 'through'>

/** Draws documents, ranges and requests from a seed. */
class Draw {
  readonly #random: SeededRandom

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
  }

  below(limit: number): number {
    return Math.floor(this.#random.fraction() * limit)
  }

  key(): unknown {
    if (this.below(8) === 0) return ['text', 7, null][this.below(3)]
    return Array.from({ length: this.below(4) }, () => this.below(5))
  }

  rows(): readonly (readonly [unknown, number])[] {
    return Array.from({ length: this.below(5) }, () => [this.key(), this.below(100)])
  }

  /** @param prefix of the keys of the index */
  range(prefix: string): RowRange {
    const bound = (key: unknown): RowBound => ({
      key: prefix + encoder.encode(key), inclusive: this.below(2) > 0,
      ...(this.below(3) === 0 && { id: `${prefix === '' ? '' : 'p:'}d${this.below(900)}` }),
    })
    const kind = this.below(4)
    if (kind === 0) {
      const exact = { key: prefix + encoder.encode(this.key()), inclusive: true }
      return { lower: exact, upper: exact }
    }
    return {
      ...((prefix !== '' || kind !== 1) && { lower: bound(prefix === '' ? this.key() : null) }),
      ...((prefix !== '' || kind !== 2) && { upper: bound(this.key()) }),
    }
  }

  request(prefix: string): Request {
    return {
      ranges: Array.from({ length: 1 + this.below(4) }, () => this.range(prefix)),
      descending: this.below(2) > 0,
      groupLevel: ([0, 1, 2, 3, 'exact'] as const)[this.below(5)]!,
      ...(this.below(3) === 0 && { skip: this.below(6) }),
      ...(this.below(3) === 0 && { limit: this.below(6) }),
    }
  }
}

/** Computes the groups of a request by loops over all rows of the index. */
function loop(
  definition: IndexDefinition, rows: readonly IndexRow[], request: Request, after?: GroupPlace,
): readonly (readonly [range: number, group: string, json: string])[] {
  const { ranges, descending, groupLevel, skip = 0, limit = Infinity } = request
  const groupOf = (key: string): string => {
    if (groupLevel === 0) return ''
    if (groupLevel === 'exact') return key
    const { length } = definition.options['partitioned'] === true ? partitionPrefix('p') : ''
    return key.slice(0, length) + encoder.groupKey(key.slice(length), groupLevel)
  }
  const found = ranges.flatMap((range, number) => {
    const groups = [...Map.groupBy(rows.filter(row => isWithin(row, range)), ({ key }) => groupOf(key))]
    if (descending) groups.reverse()
    return groups.map(([group, members]) => [number, group, reduced(definition.reduce!, members)] as const)
  })
  const behind = after === undefined ? 0
    : found.findIndex(([number, group]) => number === after.range && group === after.group) + 1
  return found.slice(behind).slice(skip, skip + limit)
}

function isWithin({ key, id }: IndexRow, { lower, upper }: RowRange): boolean {
  const order = (bound: RowBound): number => key < bound.key ? -1 : key > bound.key ? 1
    : bound.id === undefined || id === bound.id ? 0 : id < bound.id ? -1 : 1
  return (lower === undefined || order(lower) >= (lower.inclusive ? 0 : 1))
    && (upper === undefined || order(upper) <= (upper.inclusive ? 0 : -1))
}

function reduced(reduce: string, rows: readonly IndexRow[]): string {
  if (reduce === custom) {
    return JSON.stringify(rows.reduce((sum, { value }) => sum + 1000 + Number(decodeViewRow(value).value), 0))
  }
  const reduction = builtInReduce(reduce)!.start()
  for (const row of rows) reduction.addRow({ ...row, value: viewRowValue(row.value) })
  return Buffer.from(encodeReducedJson(reduction.result())).toString()
}

describe('reductions of ranges', () => {
  for (const [seed, options] of [[1, {}], [3, partitioned]] as const) {
    const kind = options === partitioned ? 'partitioned' : 'global'
    it(`equal a loop over the rows, for every reduce function and request (seed ${seed}, ${kind})`, async () => {
      const draw = new Draw(seed)
      const world = await JavaScriptWorld.open()
      const revisions = new Map<string, string>()
      const change = async (count: number): Promise<void> => {
        const ids = new Set(Array.from({ length: count }, () => draw.below(900)))
        const edits = [...ids].map(number => {
          const id = options === partitioned ? `${['o', 'p', 'q'][number % 3]}:d${number}` : `d${number}`
          const parent = revisions.get(id) ?? null
          return edit(id, parent, { rows: draw.rows() }, parent !== null && draw.below(3) === 0)
        })
        const reply = await world.replica.updateDocuments({ edits, revsLimit: 10 }, context)
        assert(reply.kind === 'decided')
        for (const [at, outcome] of reply.outcomes.entries()) {
          assert(outcome.kind === 'updated')
          const { id, deleted } = edits[at]!
          if (deleted) revisions.delete(id)
          else revisions.set(id, `${outcome.path.start}-${outcome.path.ids[0]!}`)
        }
      }
      let groups = 0
      for (const count of [1500, 40, 400]) {
        await change(count)
        for (const reduce of reduces) groups += await compare(world, viewOf(map, reduce, options), draw)
      }
      assert(groups > 300)
      await world.close()
    }).timeout(60_000)
  }

  /** Returns the number of groups that were compared. */
  async function compare(world: JavaScriptWorld, definition: IndexDefinition, draw: Draw): Promise<number> {
    await world.build(definition)
    const read = { index: indexId(definition), through: 0 } as const
    const rows = (await collect(world.indexes.scanIndex({ ...read, ranges: [{}], descending: false }, context)))
      .filter((row): row is IndexRow => row.kind === 'row')
    const groupsOf = async (request: Request, after?: GroupPlace): Promise<readonly ReducedGroup[]> => {
      const pages = world.indexes.reduceIndex({ ...read, ...request, ...(after && { after }) }, context)
      return (await collect(pages)).filter((row): row is ReducedGroup => row.kind === 'group')
    }
    let compared = 0
    const prefix = definition.options['partitioned'] === true ? partitionPrefix('p') : ''
    for (let round = 0; round < 8; round++) {
      const request = draw.request(prefix)
      const all = await groupsOf({ ...request, skip: 0, limit: Infinity })
      for (const after of [undefined, all[draw.below(all.length)]]) {
        const found = await groupsOf(request, after)
        const values = await world.again(definition, found.map(({ value }) => [value]))
        const shown = found.map(({ range, group }, at) => [range, group, JSON.stringify(values[at]![1])])
        assert.deepEqual(shown, loop(definition, rows, request, after), JSON.stringify([definition.reduce, request]))
        compared += found.length
      }
    }
    return compared
  }
})
