/** Which document ids a client may use (docs/reference/documents.md#ids). */
import { ApiError } from '../errors.ts'

export interface DocumentIdRules {
  readonly partitioned: boolean
  /** Longest id in bytes of UTF-8; more than 64 KiB are never taken. */
  readonly maxLength?: number
}

/** Most bytes of an id. With ids of this length pages of rows stay small, and every request has room for one. */
export const documentIdBytesLimit = 64 * 1024

export const designPrefix = '_design/'
export const localPrefix = '_local/'

/**
 * Checks a document id that a client sent, in a URL or in a member, and returns it.
 *
 * @throws ApiError `illegal_docid` or `illegal_partition`
 */
export function checkDocumentId(id: unknown, rules: DocumentIdRules): string {
  if (typeof id !== 'string') throw new ApiError('illegal_docid', 'Document id must be a string')
  if (id === '') throw new ApiError('illegal_docid', 'Document id must not be empty')
  if (!id.isWellFormed()) throw new ApiError('illegal_docid', 'Document id must be valid UTF-8')
  if (Buffer.byteLength(id) > Math.min(rules.maxLength ?? documentIdBytesLimit, documentIdBytesLimit)) {
    throw new ApiError('illegal_docid', 'Document id is too long')
  }
  if (id.startsWith('_')) checkReservedId(id)
  else if (rules.partitioned) checkPartitionedId(id)
  return id
}

function checkReservedId(id: string): void {
  if (id === designPrefix || id === localPrefix) throw new ApiError('illegal_docid', `Illegal document id \`${id}\``)
  if (!id.startsWith(designPrefix) && !id.startsWith(localPrefix)) {
    throw new ApiError('illegal_docid', 'Only reserved document ids may start with underscore.')
  }
}

function checkPartitionedId(id: string): void {
  const colon = id.indexOf(':')
  if (colon === -1) throw new ApiError('illegal_docid', 'Doc id must be of form partition:id')
  checkPartition(id.slice(0, colon))
  if (colon === id.length - 1) throw new ApiError('illegal_docid', 'Document id must not be empty')
}

/**
 * Checks the name of a partition.
 *
 * @throws ApiError `illegal_partition`
 */
export function checkPartition(partition: string): void {
  if (partition === '') throw new ApiError('illegal_partition', 'Partition must not be empty')
  if (partition.startsWith('_')) throw new ApiError('illegal_partition', 'Partition must not start with an underscore')
  if (partition.includes(':')) throw new ApiError('illegal_partition', 'Partition must not contain a colon')
  if (!partition.isWellFormed()) throw new ApiError('illegal_partition', 'Partition must be valid UTF-8')
}

export function isDesignId(id: string): boolean {
  return id.startsWith(designPrefix)
}

export function isLocalId(id: string): boolean {
  return id.startsWith(localPrefix)
}
