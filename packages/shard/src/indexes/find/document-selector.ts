import {
  type DocumentRow, type FieldPath, type FindRequest, type FoundDocument, type IndexDefinition,
  parseFieldPaths, parseJson, parseQueryIndex, parseSelector, PatternBudget, queryRowValues, ReplicaError, rowDocument,
  type ScannedPlace, SelectorError, StoredSelector,
} from '@sectional/core'
import type { Clock, Machine } from '@sectional/runtime'
import { MatchGroups } from './match-groups.ts'

interface PatternParts { readonly clock: Clock; readonly machine: Pick<Machine, 'testInTime'> }

/** Tests the selector of one request on documents and rows, and makes the matches of the answer. */
export class DocumentSelector {
  readonly #selector: StoredSelector
  readonly #documents: FindRequest['documents']
  /** Bounds the time of the selector's patterns. */
  readonly #budget: PatternBudget
  /** Aggregates what matches; undefined when the request does not ask for it. */
  readonly groups: MatchGroups | undefined

  /** @throws ReplicaError `protocol` when the selector or the aggregation is not valid */
  constructor({ selector, documents, aggregate }: FindRequest, { clock, machine }: PatternParts) {
    this.#documents = documents
    this.groups = aggregate === undefined ? undefined : new MatchGroups(aggregate)
    this.#budget = new PatternBudget(clock, machine)
    try {
      this.#selector = new StoredSelector(parseSelector(parseJson(selector)), this.#budget.testInTime)
    } catch (error) {
      throw new ReplicaError('protocol', `the selector is not valid: ${(error as Error).message}`)
    }
  }

  /**
   * Returns the match of a document; undefined when it does not match.
   *
   * @param document with its body, and with its leaves if the request asks for them
   * @throws ReplicaError `exhausted`
   */
  match(place: ScannedPlace, value: Uint8Array, document: DocumentRow): FoundDocument | undefined {
    const { id, revision, body, attachments } = document
    if (body === undefined || id.startsWith('_design/')) return undefined
    const leaves = this.#documents === 'leaves' ? document.leaves : undefined
    const stored = { id, revision, body, ...(attachments && { attachments }), ...(leaves && { leaves }) }
    if (!this.#inTime(() => this.#selector.matches(stored))) return undefined
    this.groups?.add(stored)
    const { range, key, number } = place
    const found = { kind: 'found', range, key, id, number, value, revision } as const
    if (this.#documents === 'none') return found
    return { ...found, body, ...(attachments && { attachments }), ...(leaves && { leaves }) }
  }

  /**
   * Returns the match of a row whose fields are tested in place of the document.
   *
   * @param fields of the index
   * @throws ReplicaError `exhausted`
   */
  matchRow(
    { range, key, id, number }: ScannedPlace, value: Uint8Array, fields: readonly FieldPath[],
  ): FoundDocument | undefined {
    const document = rowDocument(id, fields, queryRowValues(value))
    if (!this.#inTime(() => this.#selector.matchesMembers(document))) return undefined
    this.groups?.addMembers(document)
    return { kind: 'found', range, key, id, number, value }
  }

  #inTime(test: () => boolean): boolean {
    this.#budget.beginDocument()
    try {
      return test()
    } catch (error) {
      if (error instanceof SelectorError) throw new ReplicaError('exhausted', error.message)
      throw error
    }
  }
}

/** Returns the fields of an index. @throws ReplicaError `protocol` when it is not an index of the kind `query` */
export function indexFields(definition: IndexDefinition): readonly FieldPath[] {
  try {
    return parseFieldPaths(parseQueryIndex(definition).fields)
  } catch {
    throw new ReplicaError('protocol', 'documents can be found only by an index of the kind query')
  }
}
