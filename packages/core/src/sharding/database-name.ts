import { ApiError } from '../errors.ts'

/** Longest part of a name between slashes, in characters: CouchDB's limit, so that every name can be replicated there. */
export const NAME_SEGMENT_LENGTH_MAX = 238

const LEGAL_NAME = /^[a-z][a-z0-9_$()+/-]*$/
const SYSTEM_NAMES: ReadonlySet<string> = new Set(['_dbs', '_global_changes', '_metadata', '_nodes', '_replicator', '_users'])

/** True for names that a database can have (docs/reference/databases.md). */
export function isDatabaseName(name: string): boolean {
  return LEGAL_NAME.test(name) || SYSTEM_NAMES.has(name)
}

/**
 * @returns the name
 * @throws ApiError `illegal_database_name` or `database_name_too_long`
 */
export function checkDatabaseName(name: string): string {
  if (!isDatabaseName(name)) {
    throw new ApiError('illegal_database_name', `Name: '${name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters `
      + '_, $, (, ), +, -, and / are allowed. Must begin with a letter.')
  }
  if (name.split('/').some(segment => segment.length > NAME_SEGMENT_LENGTH_MAX)) {
    throw new ApiError('database_name_too_long', `At least one path segment of \`${name}\` is too long.`)
  }
  return name
}
