/** The indexes that design documents with `language: "query"` define. */
import { isJsonObject, parseJson, queryIndexDefinition, type IndexDefinition, type JsonObject } from '@sectional/core'
import type { DatabaseRecord, DesignDocument } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { jsonMembers, type JsonMembers } from './json-members.ts'
import type { SortField } from './sort-fields.ts'

export interface StoredIndex {
  /** With `_design/`. */
  readonly ddoc: string
  readonly name: string
  /** Not empty, all of one direction. */
  readonly fields: readonly SortField[]
  /** The selector that documents of the index pass, in normal form; absent when all documents may have rows. */
  readonly partialFilter?: JsonObject
  /** Whether the rows are ordered by partition, so that only queries of one partition can use the index. */
  readonly partitioned: boolean
  /** What the replicas build. */
  readonly definition: IndexDefinition
}

/** What an index depends on beside its design document. */
type IndexedDatabase = Pick<DatabaseRecord, 'partitioned'>

/** Returns the indexes of all design documents, in the order of their design documents and names. */
export async function storedIndexes(
  { database }: RequestContext, { coordinator }: Services,
): Promise<readonly StoredIndex[]> {
  const documents = await coordinator.designDocuments(database)
  return [...documents.values()]
    .flatMap(document => indexesOf(document, database))
    .sort((a, b) => order(a.ddoc, b.ddoc) || order(a.name, b.name))
}

function order(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Returns the indexes of one design document. */
export function indexesOf(document: DesignDocument, database: IndexedDatabase): readonly StoredIndex[] {
  return document.derived(database.partitioned ? partitionedIndexes : globalIndexes)
}

const partitionedIndexes = ({ id, body }: DesignDocument): readonly StoredIndex[] =>
  readIndexes(id, body, { partitioned: true })
const globalIndexes = ({ id, body }: DesignDocument): readonly StoredIndex[] =>
  readIndexes(id, body, { partitioned: false })

/**
 * Reads the indexes of one design document. Members of `views` that define no index are left out, as CouchDB does.
 *
 * @param id with `_design/`
 * @param body canonical JSON
 */
export function readIndexes(id: string, body: Uint8Array, database: IndexedDatabase): readonly StoredIndex[] {
  const members = jsonMembers(body)
  if (languageOf(members) !== queryLanguage) return []
  const isPartitioned = database.partitioned && partitionedOption(members) !== false
  return [...jsonMembers(members.get('views') ?? '')].flatMap(([name, view]) => {
    const map = jsonMembers(jsonMembers(view).get('map') ?? '')
    const fields = readFields(map.get('fields') ?? '')
    if (fields === null) return []
    const filter = parseJson(map.get('partial_filter_selector') ?? '{}')
    const isPartial = isJsonObject(filter) && Object.keys(filter).length > 0
    const partial = isPartial && { partialFilter: filter }
    const columns = fields.map(field => field.name)
    const definition = queryIndexDefinition({ fields: columns, partitioned: isPartitioned, ...partial })
    return [{ ddoc: id, name, fields, partitioned: isPartitioned, definition, ...partial }]
  })
}

export const queryLanguage = 'query'

/** Returns the language of a design document. A new document of indexes has none yet. */
export function languageOf(members: JsonMembers): unknown {
  const language = members.get('language')
  return language === undefined ? undefined : parseJson(language)
}

/** Returns whether the design document says that its indexes are partitioned; undefined when it says nothing. */
export function partitionedOption(members: JsonMembers): boolean | undefined {
  const option = jsonMembers(members.get('options') ?? '').get('partitioned')
  return option === undefined ? undefined : option === 'true'
}

/** Reads `{"name":"asc",...}`, in which the order of the members counts. Returns null when it has another form. */
function readFields(text: string): readonly SortField[] | null {
  const fields = [...jsonMembers(text)].map(([name, direction]) => ({ name, direction: parseJson(direction) }))
  const direction = fields[0]?.direction
  if (direction !== 'asc' && direction !== 'desc') return null
  return fields.every(field => field.direction === direction) ? fields as readonly SortField[] : null
}

/** Returns the index as `_index` lists it. */
export function listedIndex({ ddoc, name, fields, partialFilter, partitioned }: StoredIndex): object {
  return {
    ddoc, name, type: 'json', partitioned,
    def: {
      fields: fields.map(field => ({ [field.name]: field.direction })),
      ...(partialFilter && { partial_filter_selector: partialFilter }),
    },
  }
}

/** The list of all documents, as `_index` and `_explain` show it among the indexes. */
export const allDocumentsIndex = Object.freeze({
  ddoc: null, name: '_all_docs', type: 'special', def: { fields: [{ _id: 'asc' }] },
})
