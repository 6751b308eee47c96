import type {
  DocumentRow, FieldPath, FindRequest, FindRow, IndexDefinition, IndexRow, ReadDocuments, ScanIndexRequest,
  ScannedPlace,
} from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { indexState } from '../index-content.ts'
import { scanIndex } from '../index-scan.ts'
import type { IndexSnapshot } from '../index-snapshot.ts'
import { documentCallMs, type FindParts, firstReadMin, readGrowth } from './document-find.ts'
import { DocumentSelector, indexFields } from './document-selector.ts'
import { FindAnswer } from './find-answer.ts'

interface FoundIndex { readonly snapshot: IndexSnapshot; readonly definition: IndexDefinition }

/**
 * Finds documents by the rows of an index.
 *
 * @param check throws when the call has ended
 */
export async function* findByIndex(
  parts: FindParts, { snapshot, definition }: FoundIndex, request: FindRequest, check: () => void,
): AsyncGenerator<readonly FindRow[]> {
  const fields = indexFields(definition)
  const selector = new DocumentSelector(request, parts)
  const answer = new FindAnswer(request, parts.clock, selector.groups)
  yield [{ kind: 'head', ...indexState(snapshot.state), rowsBefore: 0 }]
  if (answer.isComplete) return
  const find = new IndexFind(parts, selector, answer, request, fields, snapshot.state.history)
  for await (const page of rowPages(parts, snapshot, request, check)) {
    for (const row of page) {
      await find.examine(row)
      check()
      if (answer.isComplete) return yield answer.takePage()
      if (answer.isPageDue) yield answer.takePage()
      if (parts.turns.due()) await parts.turns.next()
    }
  }
  const rest = answer.takePage()
  if (rest.length > 0) yield rest
}

/** Reads more rows each time, because it is not known how many of them match. All are of one state. */
async function* rowPages(
  { turns }: FindParts, snapshot: IndexSnapshot, { source, descending, after, limit = Infinity }: FindRequest,
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
    for await (const page of scanIndex(snapshot, scan, turns, check)) {
      const rows = page.filter(row => row.kind === 'row')
      if (rows.length === 0) continue
      read += rows.length
      behind = rows.at(-1)
      yield rows
    }
    if (read < count) return
  }
}

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

  async examine(row: IndexRow): Promise<void> {
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
