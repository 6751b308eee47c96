import {
  decodeViewRow, parseFieldPaths, parseQueryIndex, rowDocument,
  type FieldPath, type FoundDocument, type IndexRow, type OpenDocumentRequest,
} from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindQuery } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { localReadCall } from '../shard-calls/coordinator-scope.ts'
import type { FindScope } from './find-scope.ts'
import { SelectorTest } from './selector-test.ts'

/** The most bytes of documents that are found in this way. All of them are in memory at the same time. */
const foundBytesMax = 1024 * 1024

/** Reads the documents of index rows from the replicas of this node, and keeps those that match. */
export class LocalDocuments {
  /** In the order in which the rows were examined. */
  readonly found: FoundDocument[] = []
  keysExamined = 0
  documentsExamined = 0
  readonly #scope: FindScope
  readonly #db: DatabaseRecord
  readonly #documents: FindQuery['documents']
  readonly #context: OperationContext
  readonly #test: SelectorTest
  /** The fields of the index if no document has to be read. */
  readonly #columns: readonly FieldPath[] | undefined
  #bytes = 0

  constructor(
    scope: FindScope, db: DatabaseRecord, { selector, source, documents }: FindQuery, context: OperationContext,
  ) {
    this.#scope = scope
    this.#db = db
    this.#documents = documents
    this.#context = context
    this.#test = new SelectorTest(selector, scope.runtime)
    this.#columns = documents === 'none' && source.kind === 'index'
      ? parseFieldPaths(parseQueryIndex(source.definition).fields)
      : undefined
  }

  get matches(): number {
    return this.found.length
  }

  /** Returns false when a document could not be read or tested, or when the documents found have too many bytes. */
  async examine(rows: readonly IndexRow[]): Promise<boolean> {
    const { turns } = this.#scope.runtime
    try {
      for (const row of rows) {
        const match = this.#columns === undefined ? await this.#open(row) : this.#matchOfRow(row, this.#columns)
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

  #matchOfRow({ range, key, id, number, value }: IndexRow, columns: readonly FieldPath[]): FoundDocument | undefined {
    const values = JSON.parse(decodeViewRow(value).key) as readonly unknown[]
    if (!this.#test.matchesMembers(rowDocument(id, columns, values))) return undefined
    return { kind: 'found', range, key, id, number, value }
  }

  async #open({ range, key, id, number, value }: IndexRow): Promise<FoundDocument | undefined> {
    const peer = this.#scope.access.readers(this.#scope.access.placeOf(this.#db, id))[0]
    if (peer?.local !== true) throw new Error('the shard has no replica here any more')
    const request: OpenDocumentRequest = { id, body: true, tree: false }
    const opened = await peer.replica.openDocument(request, localReadCall(this.#scope, this.#context))
    const winner = opened?.leaves[0]
    if (opened?.body === undefined || winner === undefined || winner.deleted) return undefined
    this.documentsExamined++
    const { body, attachments, leaves } = opened
    const found: FoundDocument = {
      kind: 'found', range, key, id, number, value, revision: winner.revision, body,
      ...(attachments && { attachments }), ...(this.#documents === 'leaves' && { leaves }),
    }
    return this.#test.matches(found) ? found : undefined
  }
}
