/** Checks the types of members of the bodies of `_find`, `_explain` and `_index`. All functions throw ApiError. */
import { ApiError, shortJson, type JsonObject } from '@sectional/core'

/** Most characters of a value that an error text shows. */
const shownMax = 1000

/** Returns the JSON text of a value for an error text. */
export function shown(value: unknown): string {
  return shortJson(value, shownMax)
}

/** Returns the text of a string without quotes, and JSON of any other value, as CouchDB shows names in error texts. */
export function named(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, shownMax) : shown(value)
}

/** @throws ApiError `invalid_key` for a member that is not known */
export function requireKnownMembers(body: JsonObject, known: ReadonlySet<string>): void {
  for (const name of Object.keys(body)) {
    if (!known.has(name)) throw new ApiError('invalid_key', `Invalid key ${named(name)} for this request.`)
  }
}

/** @throws ApiError `missing_required_key` */
export function requireMember(body: JsonObject, name: string): unknown {
  if (body[name] === undefined) throw new ApiError('missing_required_key', `Missing required key: ${name}`)
  return body[name]
}

/** Returns a boolean; `otherwise` when the member is absent. */
export function booleanOption(value: unknown, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (typeof value !== 'boolean') throw new ApiError('invalid_boolean', `Invalid boolean value: ${shown(value)}`)
  return value
}

/** Returns an integer of at least 0; `otherwise` when the member is absent. */
export function countOption(value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw new ApiError('invalid_non_neg_integer', `${shown(value)} is not an integer greater than or equal to zero`)
  }
  return value as number
}

/** Returns an integer of at least 1, or undefined when the member is absent. */
export function quorumOption(value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw new ApiError('invalid_pos_integer', `${shown(value)} is not an integer greater than zero`)
  }
  return value as number
}

/** Returns a string, or undefined when the member is absent. */
export function textOption(value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw new ApiError('invalid_string', `Invalid string: ${shown(value)}`)
  return value
}

/** Returns a string that is not empty, or undefined when the member is absent. */
export function nameOption(value: unknown): string | undefined {
  const name = textOption(value)
  if (name === '') throw new ApiError('invalid_empty_string')
  return name
}
