/** Queries by selector over replicas and indexes in memory, with the faults of `ReplicaWorld`. */
import {
  builtInReduce, encodeViewGroup, matchesSelector, parseSelector, queryIndexDefinition, queryRowMaker, SortKeyEncoder,
} from '@sectional/core'
import type { FoundDocument, JsonObject, RowRange } from '@sectional/core'
import type { FindAnswer, FindQuery } from '../../src/contracts/find-query.ts'
import { collect, IndexWorld } from '../views/index-world.ts'
import { edit, request } from '../replica-world.ts'

export interface StoredDocument extends JsonObject { readonly _id: string; readonly _deleted?: boolean }

/** What an answer has, after it was read to its end. */
export interface FoundAnswer extends Pick<FindAnswer, 'lastPosition' | 'statistics'> {
  readonly ids: readonly string[]
  readonly matches: readonly FoundDocument[]
}

/** `selector` is JSON text. */
export interface TestQuery extends Partial<Omit<FindQuery, 'selector'>> { readonly selector?: string }

const encoder = new SortKeyEncoder('root')

export const everyDocument: FindQuery = {
  selector: parseSelector({}), isExact: false, source: { kind: 'documents' }, descending: false, skip: 0, limit: null,
  documents: 'winner', update: true, timeoutMs: 10_000,
}

export class FindWorld extends IndexWorld {
  protected override get indexer(): IndexWorld['indexer'] {
    return {
      map: (definition, { id, leaves, body }) => {
        const row = queryRowMaker(definition)({ id, revision: leaves[0]!.revision, body: body! })
        return row === undefined ? [] : [row]
      },
      groupOf: (key, level) => encoder.groupKey(key, level),
      reduce: (_definition, rows) => {
        const reduction = builtInReduce('_count')!.start()
        for (const { value } of rows) reduction.addRow({ key: '', id: '', number: 0, value })
        return encodeViewGroup(null, reduction.encode())
      },
    }
  }

  /** Writes the next revision of each document. */
  async put(documents: readonly StoredDocument[], via = this.nodes[0]!, w = this.nodes.length): Promise<void> {
    const coordinator = this.coordinator(via)
    const found = await coordinator.openDocuments(this.db, documents.map(({ _id }) => _id), { body: false }, request())
    const edits = documents.map(({ _id, _deleted = false, ...body }, at) =>
      edit(_id, found[at]?.leaves[0]?.revision ?? null, body, _deleted))
    await this.during(coordinator.updateDocuments(this.db, edits, { w }, request()))
  }

  /** Reads an answer to its end. */
  async find(via: string, query: TestQuery): Promise<FoundAnswer> {
    const answer = await this.open(via, query)
    try {
      const matches = await this.during(collect(answer.matches))
      return { ...answer, matches, ids: matches.map(({ id }) => id) }
    } finally {
      await answer.close()
    }
  }

  open(via: string, { selector = '{}', ...query }: TestQuery): Promise<FindAnswer> {
    const asked = { ...everyDocument, ...query, selector: parseSelector(JSON.parse(selector)) }
    return this.during(this.coordinator(via).find(this.db, asked, request()))
  }
}

/** Returns the source of the rows whose first fields have values between these bounds, both inclusive. */
export function indexSource(
  fields: readonly string[], lower: readonly unknown[] = [], upper: readonly unknown[] = [{ '\uffff': 1 }],
): FindQuery['source'] {
  const definition = queryIndexDefinition({ fields, partitioned: false })
  const range: RowRange = {
    lower: { key: encoder.encode(lower), inclusive: true }, upper: { key: encoder.encode(upper), inclusive: true },
  }
  return { kind: 'index', definition, ranges: [range] }
}

/** Adds a second index, in which all matches have a row of the key with these values. */
export function intersected(
  source: FindQuery['source'], fields: readonly string[], values: readonly unknown[],
): FindQuery['source'] {
  if (source.kind !== 'index') throw new Error('only the rows of an index are filtered')
  const definition = queryIndexDefinition({ fields, partitioned: false })
  return { ...source, within: { definition, key: encoder.encode(values) } }
}

/** Returns the documents that match, in the order of the fields and then of their ids. */
export function naiveFind(
  documents: readonly StoredDocument[], selector: JsonObject, fields: readonly string[], descending: boolean,
): readonly string[] {
  const parsed = parseSelector(selector)
  const keyOf = (document: StoredDocument): string => encoder.encode(fields.map(name => document[name]))
  const sorted = documents
    .filter(document => fields.every(name => document[name] !== undefined) && matchesSelector(parsed, document))
    .map(document => ({ key: keyOf(document), id: document._id }))
    .sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : a.id < b.id ? -1 : 1)
    .map(({ id }) => id)
  return descending ? sorted.toReversed() : sorted
}
