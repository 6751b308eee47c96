/** Reads an index of one replica as a coordinator does, with the parameters of a query. */
import {
  decodeReduced, decodeViewGroup, decodeViewRow, indexId, SortKeyEncoder, withoutHead,
} from '@sectional/core'
import type {
  CallContext, IndexDefinition, IndexHead, IndexRead, IndexReplica, RowRange,
} from '@sectional/core'
import { MemorySandbox, Turns } from '@sectional/runtime'
import type { Clock } from '@sectional/runtime'
import { viewReduceAgain } from '@sectional/server'
import type { NaiveGroup, NaiveRow } from './naive-view.ts'
import type { SwarmQuery } from './view-query.ts'

const call: CallContext = { timeoutMs: 60_000 }
/** Milliseconds for which a call waits for a build. */
const buildWaitMs = 30_000

export interface ReadRows { readonly head: IndexHead; readonly rows: readonly NaiveRow[] }

export class IndexReading {
  readonly #encoder = new SortKeyEncoder('root')
  readonly #sandbox = new MemorySandbox()
  readonly #turns: Turns

  constructor(clock: Clock) {
    this.#turns = new Turns(clock)
  }

  /** Brings the index up to date. @throws Error when the build does not end in time */
  async build(replica: IndexReplica, definition: IndexDefinition): Promise<void> {
    const { position, through } = await replica.buildIndex({ definition, through: 'newest', waitMs: buildWaitMs }, call)
    if (position.sequence < through) {
      throw new Error(`the index is at sequence ${position.sequence} of ${through} after ${buildWaitMs / 1000} s`)
    }
  }

  /** Returns null unless calls wait for the index. */
  async waitingProblem(replica: IndexReplica, definition: IndexDefinition): Promise<string | null> {
    const { waiting } = await replica.indexInfo(indexId(definition), call)
    return waiting === 0 ? null : `has ${waiting} calls that wait for it at rest`
  }

  async scan(replica: IndexReplica, definition: IndexDefinition, query: SwarmQuery): Promise<ReadRows> {
    const heads: IndexHead[] = []
    const rows: NaiveRow[] = []
    const pages = replica.scanIndex(this.#read(definition, query), call)
    for await (const page of withoutHead(pages, head => heads.push(head))) {
      for (const { id, value } of page) {
        const row = decodeViewRow(value)
        rows.push({ id, key: JSON.parse(row.key), value: JSON.parse(row.value) })
      }
    }
    return { head: heads[0]!, rows }
  }

  async reduce(
    replica: IndexReplica, definition: IndexDefinition, query: SwarmQuery, incarnation: string,
  ): Promise<readonly NaiveGroup[]> {
    const parts = { sandbox: this.#sandbox, database: incarnation, turns: this.#turns }
    const reduceAgain = viewReduceAgain(parts, definition)
    const request = { ...this.#read(definition, query), groupLevel: query.groupLevel! }
    const groups: NaiveGroup[] = []
    for await (const page of withoutHead(replica.reduceIndex(request, call), () => {})) {
      const values = await reduceAgain(page.map(({ value }) => [value]), new AbortController().signal)
      for (const value of values) {
        const { key, state } = decodeViewGroup(value)
        const reduced = decodeReduced(state)
        if (reduced.failure !== undefined) throw new Error(`the reduction failed: ${reduced.failure.reason}`)
        groups.push({ key: JSON.parse(key ?? 'null'), value: JSON.parse(reduced.json) })
      }
    }
    return groups
  }

  #read(definition: IndexDefinition, query: SwarmQuery): IndexRead<never> {
    const { descending, skip, limit } = query
    const ranges = query.keys === undefined
      ? [this.#range(query)]
      : (descending && query.groupLevel === null ? query.keys.toReversed() : query.keys)
        .map(key => this.#range({ ...query, startKey: key, endKey: key, inclusiveEnd: true }))
    return {
      index: indexId(definition), through: 'newest', ranges, descending, skip, ...(limit !== null && { limit }),
    }
  }

  #range({ startKey, endKey, inclusiveEnd, descending }: SwarmQuery): RowRange {
    const start = startKey === undefined ? undefined : { key: this.#encoder.encode(startKey), inclusive: true }
    const end = endKey === undefined ? undefined : { key: this.#encoder.encode(endKey), inclusive: inclusiveEnd }
    const [lower, upper] = descending ? [end, start] : [start, end]
    return { ...(lower && { lower }), ...(upper && { upper }) }
  }
}
