/**
 * Checks the structure of a design document (docs/reference/documents.md#design-documents) without running its
 * functions.
 */
import {
  ApiError, checkReduceName, isJsonObject, parseJson, parseSelector, SelectorError, type JsonObject,
} from '@sectional/core'
import type { DatabaseRecord } from '@sectional/cluster'

const memberTypes: Readonly<Record<string, readonly string[]>> = {
  language: ['string'],
  options: ['object'],
  views: ['object'],
  filters: ['object'],
  updates: ['object'],
  shows: ['object'],
  lists: ['object'],
  indexes: ['object'],
  rewrites: ['array', 'string'],
}
/** Members whose values are objects of function sources. They may also contain objects, such as a folder of modules. */
const functionMembers = ['filters', 'updates', 'shows', 'lists']
const booleanOptions = ['include_design', 'local_seq', 'partitioned']

/** @throws ApiError `invalid_design_doc` */
export function checkDesignDocument(body: Uint8Array, database: DatabaseRecord): void {
  const design = parseJson(body) as JsonObject
  for (const [member, types] of Object.entries(memberTypes)) {
    if (design[member] !== undefined) requireType(member, design[member], types)
  }
  const { validate_doc_update: validate, language } = design
  if (validate !== undefined) {
    requireType('validate_doc_update', validate, language === 'query' ? ['object'] : ['string'])
    if (isJsonObject(validate)) checkSelector(validate)
  }
  for (const member of functionMembers) checkFunctions(member, design[member])
  checkViews(design)
  const options = design['options']
  if (isJsonObject(options)) checkOptions(options, database)
}

/** Checks a selector that validates writes. An invalid one would refuse all writes. */
function checkSelector(value: JsonObject): void {
  try {
    parseSelector(value)
  } catch (error) {
    throw error instanceof SelectorError ? invalid(`validate_doc_update: ${error.message}`) : error
  }
}

/** Checks the options that change the rows of views. */
function checkOptions(options: JsonObject, database: DatabaseRecord): void {
  for (const name of booleanOptions) {
    if (options[name] !== undefined) requireType(`options.${name}`, options[name], ['boolean'])
  }
  if (options['partitioned'] === true && !database.partitioned) {
    throw invalid('partitioned option cannot be true in a non-partitioned database.')
  }
}

function checkFunctions(member: string, functions: unknown): void {
  if (!isJsonObject(functions)) return
  for (const [name, source] of Object.entries(functions)) {
    requireType(`${member}.${name}`, source, ['string', 'object'])
  }
}

function checkViews(design: JsonObject): void {
  const views = design['views']
  if (!isJsonObject(views)) return
  const mapTypes = design['language'] === 'query' ? ['object'] : ['string']
  const parts: { readonly name: string; readonly map: unknown; readonly reduce: unknown }[] = []
  for (const [name, view] of Object.entries(views)) {
    requireType(`views.${name}`, view, ['object'])
    if (name === 'lib') continue
    const { map, reduce } = view as JsonObject
    if (map !== undefined) requireType(`views.${name}.map`, map, mapTypes)
    if (reduce !== undefined) requireType(`views.${name}.reduce`, reduce, ['string'])
    parts.push({ name, map, reduce })
  }
  for (const { name, map } of parts) {
    if (map === undefined) throw invalid(`View \`${name}\` must contain map function`)
  }
  if (!isKnown(design['language'])) return
  for (const { reduce } of parts) if (typeof reduce === 'string') checkReduceName(reduce)
}

/** Views in other languages can be saved, whatever they contain, but not queried. */
function isKnown(language: unknown): boolean {
  return language === undefined || language === 'javascript' || language === 'query'
}

function requireType(path: string, value: unknown, types: readonly string[]): void {
  if (!types.includes(typeOf(value))) throw invalid(`\`${path}\` field must have ${types.join(' or ')} type`)
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

function invalid(reason: string): ApiError {
  return new ApiError('invalid_design_doc', reason)
}
