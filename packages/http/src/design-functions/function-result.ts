/**
 * Reads what functions returned. A result of many megabytes occupies the node no longer than other work: its values
 * are checked in slices, and `json` of a response and the document of an update function are never built as values.
 */
import { jsonParts, smallJsonBytes, type JsonPart } from '@sectional/core'
import { runWhileWanted } from '../messages/body.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import {
  acceptReturned, invalidResponse, parseReturned, readResponse, type FunctionResponse,
} from './function-response.ts'

/** Most members of a response object and most elements of what an update function returns. Valid ones have fewer. */
const partsMax = 8
const openBrace = '{'.charCodeAt(0)

/**
 * Reads a response object.
 *
 * @param json what a function returned, as UTF-8
 * @throws FunctionError as `readResponse` and `parseReturned`
 */
export async function readReturned(
  json: Uint8Array, request: RequestContext, services: Services,
): Promise<FunctionResponse> {
  const parts = json.length <= smallJsonBytes ? null : await partsOf(json, request, services)
  if (parts === null) return readResponse(await parseReturned(json, request, services))
  const members = new Map<string, unknown>()
  let content: Uint8Array | undefined
  for (const { name, text } of parts) {
    if (name === 'json') content = text
    else members.set(name, await parseReturned(text, request, services))
  }
  const response = readResponse(Object.fromEntries(members))
  return content === undefined ? response : { ...response, content: { kind: 'json', json: content } }
}

/** What an update function returned. */
export interface ReturnedUpdate {
  /** JSON of the document to be written; null when the function returned none. */
  readonly document: Uint8Array | null
  readonly response: FunctionResponse
}

/** Reads `[document, response]`. @throws FunctionError as `readReturned`, and when the result has another form */
export async function readUpdate(
  json: Uint8Array, request: RequestContext, services: Services,
): Promise<ReturnedUpdate> {
  const parts = json[0] === openBrace ? null : await partsOf(json, request, services)
  const [document, response] = parts ?? []
  if (document === undefined || response === undefined) {
    throw invalidResponse('An update function must return [document, response], where the document may be null')
  }
  return {
    document: document.text[0] === openBrace ? document.text : null,
    response: await readReturned(response.text, request, services),
  }
}

function partsOf(
  json: Uint8Array, request: RequestContext, services: Services,
): Promise<readonly JsonPart[] | null> {
  return acceptReturned(request, () => runWhileWanted(jsonParts(json, partsMax), request, services))
}
