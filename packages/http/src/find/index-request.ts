/** The bodies of `POST /{db}/_index` and `POST /{db}/_index/_bulk_delete`. */
import { hash } from 'node:crypto'
import { ApiError, checkDocumentId, designPrefix, isJsonObject, type JsonObject } from '@sectional/core'
import {
  booleanOption, named, nameOption, quorumOption, requireKnownMembers, requireMember, shown, textOption,
} from './option-values.ts'
import { normalFilter } from './selector-option.ts'
import { parseSortFields, type SortField } from './sort-fields.ts'

export interface IndexRequest {
  /** With `_design/`. */
  readonly ddoc: string
  readonly name: string
  readonly fields: readonly SortField[]
  /** In normal form; `{}` admits all documents. */
  readonly partialFilter: JsonObject
  /** The member `index` as the client wrote it. */
  readonly definition: JsonObject
  /** Absent when the request does not say it. */
  readonly partitioned: boolean | undefined
  readonly w: number | undefined
}

const indexMembers = new Set(['index', 'type', 'name', 'ddoc', 'w', 'partitioned'])
const definitionMembers = new Set(['fields', 'partial_filter_selector'])
/** Types of indexes that need a search service, which does not exist in this version. */
const searchTypes = new Set(['text', 'nouveau'])

/**
 * @param conditionsMax the largest number of conditions of a partial filter
 * @throws ApiError for a request that defines no index of type `json`
 */
export function parseIndexRequest(body: JsonObject, conditionsMax: number): IndexRequest {
  const definition = requireMember(body, 'index')
  const type = textOption(body['type']) ?? 'json'
  const name = nameOption(body['name'])
  const ddoc = nameOption(body['ddoc'])
  const w = quorumOption(body['w'])
  const partitioned = body['partitioned'] === undefined ? undefined : booleanOption(body['partitioned'], false)
  requireKnownMembers(body, indexMembers)
  if (searchTypes.has(type)) throw new ApiError('index_service_missing', type)
  if (type !== 'json') throw new ApiError('invalid_index', `Invalid type for index: ${named(type)}`)
  if (!isJsonObject(definition)) {
    throw new ApiError('invalid_index', `JSON indexes must be an object, not: ${shown(definition)}`)
  }
  const fields = parseSortFields(requireMember(definition, 'fields'))
  const partialFilter = normalFilter(definition['partial_filter_selector'], conditionsMax)
  requireKnownMembers(definition, definitionMembers)
  if (fields.length === 0) throw new ApiError('invalid_fields', 'An index needs at least one field.')
  const generated = hashOf({ fields, partialFilter })
  return {
    // The name belongs to the hash, so that indexes with different names are in different design documents.
    ddoc: designId(ddoc ?? (name === undefined ? generated : hashOf({ fields, partialFilter, name }))),
    name: name ?? generated, fields, partialFilter, definition, partitioned, w,
  }
}

function hashOf(definition: object): string {
  return hash('sha1', JSON.stringify(definition), 'hex')
}

/**
 * Returns the id of a design document.
 *
 * @param name with or without `_design/`
 * @throws ApiError `invalid_empty_string`, `illegal_docid`
 */
export function designId(name: string): string {
  const bare = name.startsWith(designPrefix) ? name.slice(designPrefix.length) : name
  if (bare === '') throw new ApiError('invalid_empty_string')
  return checkDocumentId(`${designPrefix}${bare}`, { partitioned: false })
}

export interface BulkDeleteRequest {
  /** With `_design/`. */
  readonly ids: readonly string[]
  readonly w: number | undefined
}

const bulkDeleteMembers = new Set(['docids', 'w'])

export function parseBulkDelete(body: JsonObject): BulkDeleteRequest {
  const ids = requireMember(body, 'docids')
  if (!Array.isArray(ids)) {
    throw new ApiError('invalid_bulk_docs', `Bulk Delete requires an array of non-null docids. Docids: ${shown(ids)}`)
  }
  const w = quorumOption(body['w'])
  requireKnownMembers(body, bulkDeleteMembers)
  return {
    w,
    ids: [...new Set(ids.map(id => {
      if (typeof id !== 'string') throw new ApiError('invalid_index_name', `Invalid index name: ${shown(id)}`)
      return designId(id)
    }))],
  }
}
