import { parseFieldPaths, parseQueryIndex, queryRowValues, rowDocument } from '@sectional/core'
import type { FoundDocument, IndexRow, ReplicaCheckpoint } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindQuery } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { localReadCall } from '../shard-calls/coordinator-scope.ts'
import type { FindScope } from './find-scope.ts'
import { SelectorTest } from './selector-test.ts'

/** The most bytes of documents that are found in this way. All of them are in memory at the same time. */
const foundBytesMax = 1024 * 1024

/** Reads the documents of index rows from the replicas of this node, and keeps those that match. */
export class LocalReads {
  /** In the order in which the rows were examined. */
  readonly found: FoundDocument[] = []
  keysExamined = 0
  documentsExamined = 0
  readonly #scope: FindScope
  readonly #db: DatabaseRecord
  readonly #query: FindQuery
  readonly #context: OperationContext
  /** The positions of the indexes whose rows are examined, by shard. */
  readonly #positions: ReadonlyMap<ShardPlace, ReplicaCheckpoint>
  #test: SelectorTest | undefined
  #bytes = 0

  constructor(
    scope: FindScope, db: DatabaseRecord, query: FindQuery, positions: ReadonlyMap<ShardPlace, ReplicaCheckpoint>,
    context: OperationContext,
  ) {
    this.#scope = scope
    this.#db = db
    this.#query = query
    this.#positions = positions
    this.#context = context
  }

  get matches(): number {
    return this.found.length
  }

  /** Returns false when a document could not be read or tested, or when the documents found have too many bytes. */
  async examine(rows: readonly IndexRow[]): Promise<boolean> {
    const { turns } = this.#scope.runtime
    const isCovered = this.#query.documents === 'none'
    try {
      for (const row of rows) {
        const match = isCovered ? this.#matchOfRow(row) : await this.#open(row)
        this.keysExamined++
        if (match === undefined) continue
        this.found.push(match)
        this.#bytes += match.body?.length ?? 0
        if (this.#bytes > foundBytesMax) return false
        if (turns.due()) await turns.next()
      }
      return true
    } catch {
      // The replicas that are asked next report what is wrong.
      return false
    }
  }

  #matchOfRow({ range, key, id, number, value }: IndexRow): FoundDocument | undefined {
    const { isExact, source } = this.#query
    const match: FoundDocument = { kind: 'found', range, key, id, number, value }
    if (isExact || source.kind !== 'index') return match
    const columns = parseFieldPaths(parseQueryIndex(source.definition).fields)
    return this.#selector.matchesMembers(rowDocument(id, columns, queryRowValues(value))) ? match : undefined
  }

  async #open({ range, key, id, number, value }: IndexRow): Promise<FoundDocument | undefined> {
    const place = this.#scope.access.placeOf(this.#db, id)
    const replica = this.#scope.access.localReader(this.#scope.access.now(place))
    const indexed = this.#positions.get(place)
    if (replica === undefined || indexed === undefined) throw new Error('the shard has no replica here any more')
    const call = { ...localReadCall(this.#scope, this.#context), history: indexed.history }
    const opened = await replica.openDocument({ id, body: true, tree: false }, call)
    const winner = opened?.leaves[0]
    if (opened?.body === undefined || winner === undefined || winner.deleted) return undefined
    this.documentsExamined++
    const { body, attachments, leaves, sequence } = opened
    const found: FoundDocument = {
      kind: 'found', range, key, id, number, value, revision: winner.revision, body,
      ...(attachments && { attachments }), ...(this.#query.documents === 'leaves' && { leaves }),
    }
    // The row is that of this revision unless the document has changed since the index was built.
    const isTested = this.#query.isExact && sequence <= indexed.sequence
    return isTested || this.#selector.matches(found) ? found : undefined
  }

  get #selector(): SelectorTest {
    return this.#test ??= new SelectorTest(this.#query.selector, this.#scope.runtime)
  }
}
