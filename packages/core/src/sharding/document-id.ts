/** Which document ids a client may use (docs/reference/documents.md#ids). */
import { ApiError } from '../errors.ts'

export interface DocumentIdRules {
  readonly partitioned: boolean
  /** Maximum bytes of an id in UTF-8. Ids of more than 64 KiB are refused in any case. */
  readonly maxLength?: number
}

/** Maximum bytes of an id in UTF-8. With it, pages of rows stay small, and every request has room for an id. */
const idBytesMax = 64 * 1024

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
  if (Buffer.byteLength(id) > Math.min(rules.maxLength ?? idBytesMax, idBytesMax)) throw idTooLong()
  if (id.startsWith('_')) checkReservedId(id)
  else if (rules.partitioned) checkPartitionedId(id)
  return id
}

/**
 * Checks only that an id is not longer than the ids of documents can be, whatever the configuration.
 *
 * @throws ApiError `illegal_docid`
 */
export function checkIdBytes(id: string): void {
  if (Buffer.byteLength(id) > idBytesMax) throw idTooLong()
}

function idTooLong(): ApiError {
  return new ApiError('illegal_docid', 'Document id is too long')
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
