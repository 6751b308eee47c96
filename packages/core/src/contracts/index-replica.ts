/**
 * The contract of the indexes of one replica of one shard, beside `ShardReplica`. An index holds the rows that the
 * replica's live documents have under one definition. It consumes the replica's changes and purges in one order, and
 * belongs to one history of the replica. Coordinators merge the rows of one replica of each range. Each implementation
 * runs the conformance suite (`index-suite/index-replica-suite.ts`).
 *
 * Reading an index takes two steps. A coordinator scans with `through`; when that rejects with `not_hosted`, it sends
 * the definition with `buildIndex`, and scans again with the sequence that the reply names. So a replica that does not
 * know the definition receives it with the query, and a query whose index is up to date is one call.
 */
import type { FindRequest, FindRow } from './index-replica/found-documents.ts'
import type { IndexDefinition } from './index-replica/index-definition.ts'
import type { GroupPlace, RowRange, ScannedPlace } from './index-replica/index-rows.ts'
import type { IndexHead, IndexState, RequiredSequence } from './index-replica/index-state.ts'
import { ReplicaError } from './replica-error.ts'
import { call, pages, type VerbsOf } from './verb-table.ts'

export * from './index-replica/found-documents.ts'
export * from './index-replica/index-definition.ts'
export * from './index-replica/index-rows.ts'
export * from './index-replica/index-state.ts'

export interface BuildIndexRequest {
  readonly definition: IndexDefinition
  readonly through: RequiredSequence
  /** Milliseconds after which the call answers although the index is behind; 0: it only begins the build. */
  readonly waitMs: number
}

/** The index is up to date for the request when `position.sequence` has reached `through`. */
export interface BuildIndexReply extends IndexState {
  /** The sequence that the request asked for, as a number. */
  readonly through: number
}

/** What to read of an index. `Place` is a place in the order of the answer. */
export interface IndexRead<Place> {
  /** The id of the index (`indexId`). */
  readonly index: string
  readonly through: RequiredSequence
  /** Read one after the other, in this order in both directions. A row of two ranges is listed twice. */
  readonly ranges: readonly RowRange[]
  /** The direction within each range. */
  readonly descending: boolean
  /** Only rows strictly behind this place in the order of the answer: where another replica of the shard stopped. */
  readonly after?: Place
  /** Number of rows (of a reduction: groups) to leave out at the beginning, or behind `after`. */
  readonly skip?: number
  readonly limit?: number
}

export interface ScanIndexRequest extends IndexRead<ScannedPlace> {}

export interface ReduceIndexRequest extends IndexRead<GroupPlace> {
  /**
   * Which rows of a range make a group: those whose keys agree in this many first elements (keys that are not arrays:
   * in the whole key), or in the whole key (`exact`). 0: all.
   */
  readonly groupLevel: number | 'exact'
}

export interface IndexRow extends ScannedPlace {
  readonly kind: 'row'
  /** The emitted key and value as the indexer encoded them. Replicas and links do not parse it. */
  readonly value: Uint8Array
}

/** The rows of one range that form one group. A group without rows is not listed. */
export interface ReducedGroup extends GroupPlace {
  readonly kind: 'group'
  /** The group's key and reduced value as the indexer encoded them, to be reduced with those of other shards. */
  readonly value: Uint8Array
}

export interface IndexFailure { readonly id: string; readonly error: string }

/** How many failing documents `IndexInfo` names. */
export const indexFailuresMax = 10

export interface IndexInfo extends IndexState {
  readonly definition: IndexDefinition
  /** True while a build runs. */
  readonly building: boolean
  /** Number of calls that wait for a build. */
  readonly waiting: number
  /** Number of documents that have no rows because the map function failed on their current revision. */
  readonly failedCount: number
  /** Some of them, at most `indexFailuresMax`. */
  readonly failures: readonly IndexFailure[]
  /** Bytes: `file` on disk (approximate), `active` rows as they are stored, `external` keys and values of the rows. */
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
}

/**
 * Failures of all verbs: `other_history` when the replica has another history than `CallContext.history`; `not_hosted`
 * when the replica has no such index in its current history, or one that has not reached `through`.
 */
export const indexVerbs = {
  /**
   * Creates the index unless it exists, builds it beside other calls, and answers when it has reached `through` or when
   * `waitMs` have passed. The build continues after the answer. An index whose position the replica no longer knows
   * (another history, or purges after it were trimmed) is built anew from the first change. A failing map function does
   * not fail the build. Rejects with `other_history` when the replica was replaced during the call, and with the error
   * by which the build ended.
   */
  buildIndex: call<BuildIndexRequest, BuildIndexReply>({ waits: ({ waitMs }) => waitMs > 0 }),
  /** Lists rows; the head comes first (`withoutHead`). All pages are read from one state of the index. */
  scanIndex: pages<ScanIndexRequest, IndexHead | IndexRow>(),
  /**
   * Reduces the groups of rows, where the rows are; the head comes first. All pages are read from one state. Rejects
   * with `protocol` when the definition has no reduce function.
   */
  reduceIndex: pages<ReduceIndexRequest, IndexHead | ReducedGroup>(),
  /**
   * Lists the documents that match a selector, which is evaluated where the documents are, with the progress. The rows
   * of an index are read from one state of it; the documents are read later, each in its newest state. So a match has
   * the selector's fields as they are now, and its place is that of its earlier fields. Design documents and deleted
   * documents never match. Rejects with `protocol` when the selector or the index is not suitable, and with `exhausted`
   * when the selector takes too long on a document; the message is then that of `SelectorError`.
   */
  find: pages<FindRequest, FindRow>(),
  /** Returns information about the index with that id. */
  indexInfo: call<string, IndexInfo>(),
  /** Removes all indexes but those with the given ids. Their builds end; scans that have begun are completed. */
  dropIndexes: call<{ readonly except: readonly string[] }, void>(),
}

export interface IndexReplica extends VerbsOf<typeof indexVerbs> {}

/**
 * Takes the head out of an answer, so that the remaining pages can be merged with those of other shards.
 *
 * @param onHead receives the head before the first page is returned
 * @throws ReplicaError `protocol` when the answer does not have one head, before its rows. Links do not check this.
 */
export async function* withoutHead<Row extends { readonly kind: string }>(
  answer: AsyncIterable<readonly (IndexHead | Row)[]>, onHead: (head: IndexHead) => void,
): AsyncGenerator<readonly Row[]> {
  let begun = false
  for await (const page of answer) {
    let rows = page
    if (!begun && page.length > 0) {
      const [head] = page
      if (head!.kind !== 'head') throw new ReplicaError('protocol', 'the answer of an index begins without its head')
      begun = true
      rows = page.slice(1)
      onHead(head as IndexHead)
    }
    if (rows.some(({ kind }) => kind === 'head')) throw new ReplicaError('protocol', 'an index answered with two heads')
    if (rows.length > 0) yield rows as readonly Row[]
  }
  if (!begun) throw new ReplicaError('protocol', 'an index answered without a head')
}
