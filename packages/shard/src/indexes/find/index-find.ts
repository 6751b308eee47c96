import type {
  DocumentRow, FieldPath, FindRequest, FindRow, IndexDefinition, IndexRow, ReadDocuments, ScanIndexRequest,
  ScannedPlace,
} from '@sectional/core'
import { queryRowValues, ReplicaError, rowDocument } from '@sectional/core'
import { indexState } from '../index-content.ts'
import { scanIndex } from '../index-scan.ts'
import type { IndexSnapshot } from '../index-snapshot.ts'
import { RowTree } from '../row-tree.ts'
import { documentCallMs, type FindParts, firstReadMin, readGrowth } from './document-find.ts'
import { DocumentSelector, indexFields } from './document-selector.ts'
import { type FilteredRow, filteredRows } from './filtered-rows.ts'
import { FindAnswer } from './find-answer.ts'
import { type RowGroup, groupedRows } from './grouped-rows.ts'
import { KeyRows } from './key-rows.ts'

interface FoundIndex {
  readonly snapshot: IndexSnapshot
  readonly definition: IndexDefinition
  /** Returns the part of a key with that many columns (`Indexer.groupOf`). */
  readonly groupOf: (key: string, columns: number) => string
  /** The second index of the request, as fresh as the first one. Absent: the rows are not filtered. */
  readonly filter?: { readonly snapshot: IndexSnapshot; noteFailure(error: unknown): void }
}

/**
 * Finds documents by the rows of an index.
 *
 * @param check throws when the call has ended
 */
export async function* findByIndex(
  parts: FindParts, found: FoundIndex, request: FindRequest, check: () => void,
): AsyncGenerator<readonly FindRow[]> {
  const { snapshot } = found
  const fields = indexFields(found.definition)
  const selector = new DocumentSelector(request, parts)
  const answer = new FindAnswer(request, parts.clock, selector.groups, parts.pages)
  yield [{ kind: 'head', ...indexState(snapshot.state), rowsBefore: 0 }]
  if (answer.isComplete) return
  const grouped = groupedPages(found, selector, request, fields, check)
  if (grouped !== undefined) return yield* findGroups(parts, selector, answer, fields, grouped)
  const find = new IndexFind(parts, selector, answer, request, fields, snapshot.state.history)
  for await (const page of filteredPages(found, request, check) ?? rowPages(parts, snapshot, request, check)) {
    for (const row of page) {
      if (hasValue(row)) await find.examine(row)
      else answer.examined(row, 0)
      check()
      if (answer.isComplete) return yield answer.takePage()
      if (answer.isPageDue) yield answer.takePage()
      if (parts.turns.due()) await parts.turns.next()
    }
  }
  const rest = answer.takePage()
  if (rest.length > 0) yield rest
}

/** Aggregates rows that agree in all fields of the aggregation together. */
async function* findGroups(
  { turns }: FindParts, { groups }: DocumentSelector, answer: FindAnswer, fields: readonly FieldPath[],
  pages: AsyncIterable<readonly RowGroup[]>,
): AsyncGenerator<readonly FindRow[]> {
  for await (const page of pages) {
    for (const { value, last, count } of page) {
      groups!.addMembers(rowDocument(last.id, fields, queryRowValues(value)), count)
      answer.counted(last, count)
    }
    if (answer.isPageDue) yield answer.takePage()
    if (turns.due()) await turns.next()
  }
  const rest = answer.takePage()
  if (rest.length > 0) yield rest
}

/** Returns undefined when each row must be examined. */
function groupedPages(
  { snapshot, groupOf }: FoundIndex, { groups }: DocumentSelector, request: FindRequest,
  fields: readonly FieldPath[], check: () => void,
): AsyncGenerator<readonly RowGroup[]> | undefined {
  const columns = request.isExact === true && request.documents === 'none' ? groups?.columnsIn(fields) : undefined
  const rows = snapshot.rows(check)
  if (columns === undefined || request.descending || !(rows instanceof RowTree)) return undefined
  return groupedRows(rows, key => columns === 0 ? '' : groupOf(key, columns), request, check)
}

/** Returns undefined when the rows are not filtered. */
function filteredPages(
  { snapshot, filter }: FoundIndex, request: FindRequest, check: () => void,
): AsyncGenerator<readonly FilteredRow[]> | undefined {
  const { source } = request
  if (filter === undefined || source.kind !== 'index' || source.within === undefined) return undefined
  const [rows, others] = [snapshot.rows(check), filter.snapshot.rows(check)]
  // An index whose rows have no summaries yet cannot be searched for single rows.
  if (!(rows instanceof RowTree) || !(others instanceof RowTree)) return undefined
  const keyRows = new KeyRows(others, source.within.key, error => filter.noteFailure(error))
  return filteredRows(rows, keyRows, request, check)
}

function hasValue(row: FilteredRow): row is ExaminedRow {
  return row.value !== undefined
}

/** Reads more rows each time, because it is not known how many of them match. All are of one state. */
async function* rowPages(
  { turns, pages }: FindParts, snapshot: IndexSnapshot, { source, descending, after, limit = Infinity }: FindRequest,
  check: () => void,
): AsyncGenerator<readonly IndexRow[]> {
  if (source.kind !== 'index') throw new ReplicaError('protocol', 'the source is not an index')
  const { index, through, ranges } = source
  let behind: ScannedPlace | undefined = after
  for (let count = Math.max(firstReadMin, limit); ; count *= readGrowth) {
    const scan: ScanIndexRequest = {
      index, through, ranges, descending, ...(behind && { after: behind }), ...(count < Infinity && { limit: count }),
    }
    let read = 0
    for await (const page of scanIndex(snapshot, scan, turns, check, pages)) {
      const rows = page.filter(row => row.kind === 'row')
      if (rows.length === 0) continue
      read += rows.length
      behind = rows.at(-1)
      yield rows
    }
    if (read < count) return
  }
}

type ExaminedRow = ScannedPlace & Pick<IndexRow, 'value'>

class IndexFind {
  readonly #documents: ReadDocuments
  readonly #selector: DocumentSelector
  readonly #answer: FindAnswer
  readonly #request: FindRequest
  readonly #fields: readonly FieldPath[]
  readonly #history: string

  constructor(
    { documents }: FindParts, selector: DocumentSelector, answer: FindAnswer, request: FindRequest,
    fields: readonly FieldPath[], history: string,
  ) {
    this.#documents = documents
    this.#selector = selector
    this.#answer = answer
    this.#request = request
    this.#fields = fields
    this.#history = history
  }

  async examine(row: ExaminedRow): Promise<void> {
    const isCovered = this.#request.documents === 'none'
    const document = isCovered ? undefined : await this.#open(row.id)
    const match = isCovered ? this.#selector.matchRow(row, row.value, this.#fields)
      : document && this.#selector.match(row, row.value, document)
    const documents = document === undefined ? 0 : 1
    if (match === undefined) this.#answer.examined(row, documents)
    else this.#answer.found(match, documents)
  }

  /**
   * Returns a document in its newest state; undefined when it was deleted or purged after the row was written.
   *
   * @throws ReplicaError without the damage that may have caused it: it is reported by the replica, and not that of the
   * index
   */
  async #open(id: string): Promise<DocumentRow | undefined> {
    const call = { timeoutMs: documentCallMs, history: this.#history }
    try {
      const opened = await this.#documents.openDocument({ id, body: true, tree: false }, call)
      const winner = opened?.leaves[0]
      return winner === undefined || winner.deleted ? undefined : { ...opened, id, revision: winner.revision }
    } catch (error) {
      throw error instanceof ReplicaError ? new ReplicaError(error.code, error.message) : error
    }
  }
}
