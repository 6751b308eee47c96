/** Errors for requests that exceed a limit. Each names the thing, its size, and the setting that limits it. */
import { ApiError, checkIdBytes, type AttachmentRecord } from '@sectional/core'
import { httpDeclarations, type HttpOptions } from './http-options.ts'

/** Maximum bytes of all names and content types of a document's attachments. */
const attachmentHeadsBytesMax = 1024 * 1024

/** @throws ApiError `document_too_large` when the names and content types of the attachments are too long in total */
export function checkAttachmentHeads(id: string, attachments: readonly AttachmentRecord[]): void {
  const bytes = attachments.reduce(
    (sum, { name, contentType }) => sum + Buffer.byteLength(name) + Buffer.byteLength(contentType), 0,
  )
  if (bytes <= attachmentHeadsBytesMax) return
  const size = `${bytes} bytes, the limit is ${attachmentHeadsBytesMax}`
  throw new ApiError('document_too_large', `${id}: the names and types of its attachments have ${size}`)
}

export function documentTooLarge(id: string, bytes: number, bytesMax: number): ApiError {
  const { name: setting } = httpDeclarations.documentBytesMax
  return new ApiError('document_too_large', `${id}: ${bytes} bytes, ${setting} is ${bytesMax}`)
}

/** @param bytes announced bytes, or bytes that were read until the limit was exceeded */
export function attachmentTooLarge(id: string, name: string, bytes: number, bytesMax: number): ApiError {
  const { name: setting } = httpDeclarations.attachmentBytesMax
  return new ApiError('attachment_too_large', `${name} of ${id}: ${bytes} bytes, ${setting} is ${bytesMax}`)
}

/**
 * @param bytes bytes as sent
 * @param freeBytes decoded bytes up to which the ratio is not limited
 */
export function gzipTooLarge(bytes: number, ratioMax: number, freeBytes: number): ApiError {
  const { name: setting } = httpDeclarations.gzipRatioMax
  return new ApiError('too_large', `the request entity is too large: ${bytes} bytes of gzip become more than `
    + `${ratioMax} times as many, which is ${setting} for more than ${freeBytes} decoded bytes; send smaller requests`)
}

/**
 * @param what the name of the counted things in the error text
 * @param setting the name of the limit
 */
export function tooMany(what: string, count: number, max: number, setting: string): ApiError {
  return new ApiError(
    'too_large',
    `the request entity is too large: ${count} ${what}, ${setting} is ${max}; send them in several requests`,
  )
}

/**
 * @param asked lists of revisions by document id, not yet checked
 * @throws ApiError `too_large` when they contain more documents, or revisions, than `couchdb/max_bulk_get_count`,
 * `illegal_docid` for an id that is longer than documents may have, so that it is not sent to every replica
 */
export function checkRevisionCount(
  asked: readonly (readonly [string, unknown])[], { bulkGetMax }: Pick<HttpOptions, 'bulkGetMax'>,
): void {
  if (asked.length > bulkGetMax) throw tooMany('documents', asked.length, bulkGetMax, httpDeclarations.bulkGetMax.name)
  const revisions = asked.reduce((sum, [, named]) => sum + (Array.isArray(named) ? named.length : 0), 0)
  for (const [id] of asked) checkIdBytes(id)
  if (revisions > bulkGetMax) throw tooMany('revisions', revisions, bulkGetMax, httpDeclarations.bulkGetMax.name)
}

/** A limit of request bodies and the setting that it comes from. */
export interface RequestLimit { readonly bytes: number; readonly setting: string }

/** @param bytes announced bytes, or bytes that were read; undefined when the size is unknown */
export function requestTooLarge(bytes: number | undefined, limit: RequestLimit, cause?: unknown): ApiError {
  const size = bytes === undefined ? '' : `${bytes} bytes, `
  const reason = `the request entity is too large: ${size}${limit.setting} is ${limit.bytes}`
  return new ApiError('too_large', reason, cause === undefined ? undefined : { cause })
}
