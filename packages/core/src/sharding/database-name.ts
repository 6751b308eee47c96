import { ApiError } from '../errors.ts'

/**
 * Longest part of a name between slashes, in characters: CouchDB's limit, so that every name can be replicated there.
 */
export const nameSegmentLengthMax = 238

const legalName = /^[a-z][a-z0-9_$()+/-]*$/
const systemNames: ReadonlySet<string> = new Set([
  '_dbs', '_global_changes', '_metadata', '_nodes', '_replicator', '_users',
])

/** True for names that a database can have (docs/reference/databases.md). */
export function isDatabaseName(name: string): boolean {
  return legalName.test(name) || systemNames.has(name)
}

/**
 * @returns the name
 * @throws ApiError `illegal_database_name` or `database_name_too_long`
 */
export function checkDatabaseName(name: string): string {
  if (!isDatabaseName(name)) {
    throw new ApiError('illegal_database_name', `Name: '${name}'. Only lowercase characters (a-z), digits (0-9), `
      + 'and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter.')
  }
  if (name.split('/').some(segment => segment.length > nameSegmentLengthMax)) {
    throw new ApiError('database_name_too_long', `At least one path segment of \`${name}\` is too long.`)
  }
  return name
}
