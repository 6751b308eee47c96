/** What a query computes of the documents that match: groups, and one value for each aggregate of a group. */
import { ApiError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../json/json-text.ts'
import { type FieldPath, formatFieldPath, parseFieldPath } from '../selectors/field-path.ts'
import { SelectorError } from '../selectors/selector-error.ts'

/**
 * - `$count`: the number of documents that have the field; without a field, of all documents;
 * - `$sum`, `$avg`: of the field's numbers; other values are ignored. The average of no numbers is null;
 * - `$min`, `$max`: the least and the greatest value of the field in the order of views, of any type; null if no
 *   document has the field;
 * - `$distinct`: the values of the field that differ in the order of views, in that order.
 */
export type AggregateFunction = '$count' | '$sum' | '$avg' | '$min' | '$max' | '$distinct'

export interface Aggregate {
  /** The member of the answer. */
  readonly name: string
  readonly function: AggregateFunction
  /** null: no field, for `$count`. */
  readonly path: FieldPath | null
}

export interface AggregateQuery {
  /**
   * Documents whose values of these fields are equal in the order of views are one group, named by the values of one of
   * them. Empty: all documents are one group.
   */
  readonly groupBy: readonly FieldPath[]
  readonly aggregates: readonly Aggregate[]
}

const groupFieldsMax = 16
const aggregatesMax = 64
const functions: ReadonlySet<string> = new Set(['$count', '$sum', '$avg', '$min', '$max', '$distinct'])

/**
 * Reads the members `group_by`, a list of field names, and `aggregates`, for instance
 * `{"films":{"$count":true},"votes":{"$sum":"votes.total"}}`.
 *
 * @throws ApiError `bad_request` for other values and for too many of them
 */
export function parseAggregateQuery({ group_by: groupBy = [], aggregates }: JsonObject): AggregateQuery {
  if (!Array.isArray(groupBy)) throw refused('`group_by` must be a list of field names')
  if (groupBy.length > groupFieldsMax) throw refused(`\`group_by\` may have at most ${groupFieldsMax} fields`)
  if (!isJsonObject(aggregates) || Object.keys(aggregates).length === 0) {
    throw refused('`aggregates` must be an object like {"documents":{"$count":true}}')
  }
  const entries = Object.entries(aggregates)
  if (entries.length > aggregatesMax) throw refused(`\`aggregates\` may have at most ${aggregatesMax} members`)
  return {
    groupBy: groupBy.map(name => readField('group_by', name)),
    aggregates: entries.map(([name, value]) => readAggregate(name, value)),
  }
}

/** Returns the names of all fields that the query reads of a document. */
export function aggregateFields(query: AggregateQuery): readonly string[] {
  return [...new Set(aggregatePaths(query).map(formatFieldPath))]
}

/** Returns the paths to all fields that the query reads of a document. */
export function aggregatePaths({ groupBy, aggregates }: AggregateQuery): readonly FieldPath[] {
  return [...groupBy, ...aggregates.flatMap(({ path }) => path === null ? [] : [path])]
}

/**
 * Returns the number of leading columns of an index that contain all fields that the query reads; undefined when the
 * index lacks one of them.
 *
 * @param columns paths to the fields of the index
 */
export function aggregatedColumns(query: AggregateQuery, columns: readonly FieldPath[]): number | undefined {
  const names = columns.map(formatFieldPath)
  const places = aggregateFields(query).map(name => names.indexOf(name))
  return places.includes(-1) ? undefined : Math.max(...places, -1) + 1
}

/** Returns JSON from which `parseAggregateQuery` reads an equal query. */
export function aggregateJson({ groupBy, aggregates }: AggregateQuery): JsonObject {
  return {
    group_by: groupBy.map(formatFieldPath),
    aggregates: Object.fromEntries(aggregates.map(({ name, function: operator, path }) =>
      [name, { [operator]: path === null ? true : formatFieldPath(path) }])),
  }
}

function readAggregate(name: string, value: unknown): Aggregate {
  const [[operator, field] = ['', null], ...others] = isJsonObject(value) ? Object.entries(value) : []
  if (!functions.has(operator) || others.length > 0) {
    throw refused(`the aggregate ${shown(name)} must have one of the members ${[...functions].join(', ')}`)
  }
  const isCountOfAll = operator === '$count' && field === true
  return { name, function: operator as AggregateFunction, path: isCountOfAll ? null : readField(name, field) }
}

function readField(member: string, name: unknown): FieldPath {
  if (typeof name !== 'string') throw refused(`${shown(member)} must name a field, not ${shown(name)}`)
  try {
    return parseFieldPath(name)
  } catch (error) {
    throw error instanceof SelectorError ? refused(error.message) : error
  }
}

/** Most characters of a value that an error text shows. */
const shownMax = 100

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, shownMax)
}

function refused(reason: string): ApiError {
  return new ApiError('bad_request', reason)
}
