/** Lists of fields with directions: the member `sort` of a query, and the fields of an index. */
import { ApiError, isJsonObject, parseFieldPaths } from '@sectional/core'
import { shown } from './option-values.ts'
import { withSelectorErrors } from './selector-option.ts'

export interface SortField {
  /** As the client wrote it, with dots between the steps of its path. */
  readonly name: string
  readonly direction: 'asc' | 'desc'
}

/**
 * Parses a list whose elements are names, or objects with one name and a direction. A field that appears again is left
 * out, because it changes no order.
 *
 * @throws ApiError `invalid_sort_json` when it is no list, `invalid_sort_field`, `invalid_field_name`,
 * `bad_arg` for too many fields, `unsupported_mixed_sort`
 */
export function parseSortFields(value: unknown): readonly SortField[] {
  if (!Array.isArray(value)) {
    throw new ApiError('invalid_sort_json', `Sort must be an array of sort specs, not: ${shown(value)}`)
  }
  const written = value.map(parseSortField)
  const list = [...new Map(written.map(field => [field.name, field])).values()]
  withSelectorErrors(() => parseFieldPaths(list.map(({ name }) => name)))
  if (written.some(({ direction }) => direction !== written[0]!.direction)) throw new ApiError('unsupported_mixed_sort')
  return list
}

function parseSortField(value: unknown): SortField {
  const members = isJsonObject(value) ? Object.entries(value) : [[value, 'asc']]
  const [name, direction] = members.length === 1 ? members[0]! : []
  if (typeof name !== 'string' || name === '' || (direction !== 'asc' && direction !== 'desc')) {
    throw new ApiError('invalid_sort_field', `Invalid sort field: ${shown(value)}`)
  }
  return { name, direction }
}
