/** What requests of lists and of views have in common: their body and their ETag. */
import { hash } from 'node:crypto'
import type { JsonObject } from '@sectional/core'
import type { HttpHeaders } from '@sectional/runtime'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { jsonHeaders, matchesTag, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Returns the parameters in the body of a POST request; null for other methods. */
export async function listBody(request: RequestContext, services: Services): Promise<JsonObject | null> {
  if (request.method !== 'POST') return null
  requireJsonType(request)
  return readJsonObject(request, services)
}

/**
 * Returns the headers with an ETag of what is listed and of the request's parameters. Returns null after a 304 was sent
 * because the client has the current version.
 *
 * @param fingerprint distinguishes the states of what is listed
 * @param asked distinguishes the parameters
 */
export function taggedHeaders(
  fingerprint: string, asked: string, request: RequestContext, services: Services,
): HttpHeaders | null {
  const state = [request.database.incarnation, request.segments.join('/'), fingerprint, asked].join('\n')
  const etag = `"${hash('md5', state, 'hex')}"`
  if (matchesTag(request, etag)) {
    sendNotModified(request, services, etag)
    return null
  }
  return { ...jsonHeaders(request, services), ETag: etag }
}
