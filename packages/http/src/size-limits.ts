/** What a client hears when something is over a limit: what it is, how large it is, and which setting refuses it. */
import { ApiError } from '@sectional/core'

export function documentTooLarge(id: string, bytes: number, bytesMax: number): ApiError {
  return new ApiError('document_too_large', `${id}: ${bytes} bytes, couchdb/max_document_size is ${bytesMax}`)
}

/** @param bytes as announced, or as far as they were read */
export function attachmentTooLarge(id: string, name: string, bytes: number, bytesMax: number): ApiError {
  return new ApiError('attachment_too_large', `${name} of ${id}: ${bytes} bytes, couchdb/max_attachment_size is ${bytesMax}`)
}

/** A limit of request bodies with the setting that it comes from. */
export interface RequestLimit { readonly bytes: number; readonly setting: string }

/** @param bytes as announced, or as far as they were read; undefined: nobody knows */
export function requestTooLarge(bytes: number | undefined, limit: RequestLimit, cause?: unknown): ApiError {
  const size = bytes === undefined ? '' : `${bytes} bytes, `
  return new ApiError('too_large', `the request entity is too large: ${size}${limit.setting} is ${limit.bytes}`, cause === undefined ? undefined : { cause })
}
