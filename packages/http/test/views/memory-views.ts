/** The operations of views over the documents of a coordinator. Each query maps all documents and sorts all rows. */
import { createHash } from 'node:crypto'
import {
  builtInReduce, compareRows, encodeReducedJson, encodeReduceFailure, encodeViewGroup, encodeViewRow, groupOrder,
  partitionPrefix, SortKeyEncoder, type IndexDefinition, type IndexRow, type RowBound, type RowPlace, type RowRange,
} from '@sectional/core'
import type {
  Coordinator, CoordinatorNode, DatabaseRecord, OperationContext, ReduceQuery, ViewAnswer, ViewGroup, ViewInfo,
  ViewQuery,
} from '@sectional/cluster'

interface Emitted extends RowPlace { readonly shownKey: unknown; readonly shownValue: unknown }

export class MemoryViews
implements Pick<Coordinator, 'scanView' | 'reduceView' | 'viewInfo' | 'cleanViews'> {
  readonly #coordinator: CoordinatorNode
  /** Queries whose answers were opened and not closed. */
  open = 0
  /** The queries in the order of their calls. */
  readonly queries: ViewQuery[] = []
  /** The definitions of each call of `cleanViews`. */
  readonly used: (readonly IndexDefinition[])[] = []

  constructor(coordinator: CoordinatorNode) {
    this.#coordinator = coordinator
  }

  scanView = async (
    db: DatabaseRecord, query: ViewQuery, context: OperationContext,
  ): Promise<ViewAnswer<IndexRow>> => {
    const all = await this.#rows(db, query.definition, context)
    const { ranges, descending, skip, limit } = query
    const ordered = descending ? all.toReversed() : all
    const rows = ranges.flatMap((range, number) => ordered.filter(row => holds(range, row)).map((row): IndexRow => {
      const value = encodeViewRow(JSON.stringify(row.shownKey), JSON.stringify(row.shownValue))
      return { kind: 'row', range: number, ...row, value }
    }))
    const first = ranges[0] ?? {}
    const start = descending ? first.upper : first.lower
    const before = start === undefined ? 0 : ordered.findIndex(row => !isBefore(row, start, descending))
    const offset = Math.min(all.length, (before < 0 ? all.length : before) + skip)
    const chosen = rows.slice(skip, limit === null ? undefined : skip + limit)
    return this.#answer(db, query, all, offset, chosen, context)
  }

  reduceView = async (
    db: DatabaseRecord, query: Omit<ReduceQuery, 'reduceAgain'>, context: OperationContext,
  ): Promise<ViewAnswer<ViewGroup>> => {
    const all = await this.#rows(db, query.definition, context)
    const { ranges, descending, skip, limit, groupLevel, definition } = query
    const groups = ranges.flatMap((range, number) => {
      const found = new Map<string, Emitted[]>()
      for (const row of all.filter(each => holds(range, each))) {
        const name = JSON.stringify(shownGroup(row.shownKey, groupLevel))
        found.set(name, [...found.get(name) ?? [], row])
      }
      return [...found].map(([name, rows]): ViewGroup => {
        const value = encodeViewGroup(groupLevel === 0 ? null : name, reduced(definition, rows))
        return { range: number, group: rows[0]!.key, value }
      })
    }).toSorted(groupOrder(descending))
    return this.#answer(db, query, all, 0, groups.slice(skip, limit === null ? undefined : skip + limit), context)
  }

  viewInfo = async (_db: DatabaseRecord, definitions: readonly IndexDefinition[]): Promise<ViewInfo> => ({
    building: true, waiting: 2, readSequence: definitions.length, pending: { minimum: 3, preferred: 4, total: 9 },
    sizes: { file: 300, active: 200, external: 100 }, failedCount: 7, failures: [{ id: 'f', error: 'no name' }],
  })

  cleanViews = async (_db: DatabaseRecord, used: readonly IndexDefinition[]): Promise<void> => {
    this.used.push(used)
  }

  async #answer<Row>(
    db: DatabaseRecord, query: ViewQuery, all: readonly Emitted[], offset: number, rows: readonly Row[],
    context: OperationContext,
  ): Promise<ViewAnswer<Row>> {
    this.queries.push(query)
    this.open++
    const state = await this.#coordinator.databaseState(db, context)
    const updateSequence = await state.updateSequence()
    return {
      total: all.length, offset, updateSequence: () => updateSequence,
      fingerprint: createHash('md5').update(JSON.stringify([query.definition, all])).digest('hex'),
      rows: (async function* () { if (rows.length > 0) yield rows })(),
      close: async () => { this.open-- },
    }
  }

  async #rows(
    db: DatabaseRecord, definition: IndexDefinition, context: OperationContext,
  ): Promise<readonly Emitted[]> {
    const encoder = new SortKeyEncoder(definition.options['collation'] === 'raw' ? 'raw' : 'root')
    const listed = await this.#coordinator.listDocuments(db, {
      descending: false, skip: 0, limit: null, body: true, leaves: false,
    }, context)
    const rows: Emitted[] = []
    for await (const page of listed.rows) {
      for (const { id, revision, body } of page) {
        if (id.startsWith('_design/')) continue
        const doc = { ...JSON.parse(Buffer.from(body!).toString()) as object, _id: id, _rev: revision }
        const prefix = definition.options['partitioned'] === true ? partitionPrefix(id.slice(0, id.indexOf(':'))) : ''
        let number = 0
        const emit = (key: unknown = null, value: unknown = null): void => {
          rows.push({ key: prefix + encoder.encode(key), id, number: number++, shownKey: key, shownValue: value })
        }
        ;(new Function('emit', `return (${definition.map})`)(emit) as (doc: unknown) => void)(doc)
      }
    }
    return rows.toSorted(compareRows)
  }
}

function shownGroup(key: unknown, level: number | 'exact'): unknown {
  if (level === 0) return null
  return level === 'exact' || !Array.isArray(key) ? key : key.slice(0, level)
}

/** Reduces by a built-in function, or counts. Any other function fails: it throws, takes too long, or is too large. */
function reduced({ reduce }: IndexDefinition, rows: readonly Emitted[]): Uint8Array {
  const builtIn = builtInReduce(reduce!)
  if (reduce!.includes('values.length')) return encodeReducedJson(String(rows.length))
  if (builtIn === undefined) {
    const error = reduce!.includes('throw') ? 'reduce_error'
      : reduce!.includes('for (;;)') ? 'timeout' : 'reduce_overflow_error'
    return encodeReduceFailure({ error, reason: 'too "large"' })
  }
  const reduction = builtIn.start()
  for (const row of rows) reduction.addRow({ ...row, value: Buffer.from(JSON.stringify(row.shownValue)) })
  return encodeReducedJson(reduction.result())
}

function holds({ lower, upper }: RowRange, row: RowPlace): boolean {
  return (lower === undefined || !isBefore(row, lower, false)) && (upper === undefined || !isBefore(row, upper, true))
}

/** Whether a row is outside of a range that begins at the bound, in the given direction. */
function isBefore({ key, id }: RowPlace, bound: RowBound, descending: boolean): boolean {
  const order = key === bound.key
    ? bound.id === undefined ? 0 : Buffer.compare(Buffer.from(id), Buffer.from(bound.id))
    : key < bound.key ? -1 : 1
  return order === 0 ? !bound.inclusive : descending ? order > 0 : order < 0
}
