/** Converts the response object of a function of a design document to a response. */
import { ApiError, isJsonObject, type JsonObject } from '@sectional/core'
import { hasBody, type HttpHeaders } from '@sectional/runtime'
import { sessionCookieName } from '../authentication/session-cookie.ts'
import { parseBody } from '../messages/body.ts'
import { FunctionError } from '../messages/function-error.ts'
import { jsonLine, plainHeaders, send, withoutSniffing } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { usualCase } from './header-case.ts'

/** Bytes of all names and values of the headers that a function sets. Clients accept a few times as many. */
const headerBytesMax = 8 * 1024
/** Members that a response object may have. */
const members: ReadonlySet<string> = new Set(['code', 'headers', 'body', 'json', 'base64', 'stop'])
/** Headers of the connection, and those that tell where a body ends. Only the server sets them (RFC 9110, 7.6.1). */
const connectionHeaders: ReadonlySet<string> = new Set([
  'Connection', 'Content-Length', 'Keep-Alive', 'Proxy-Authenticate', 'Proxy-Authorization', 'Proxy-Connection', 'Te',
  'Trailer', 'Transfer-Encoding', 'Upgrade',
])
/**
 * Headers by which browsers change how they treat all pages of this server, also those of other databases: `NEL` makes
 * them report each request to an address of the function's choice.
 */
const serverHeaders: ReadonlySet<string> = new Set([
  'Alt-Svc', 'Clear-Site-Data', 'Nel', 'Public-Key-Pins', 'Report-To', 'Service-Worker-Allowed',
  'Strict-Transport-Security',
])
/** A name and a value of a header that every client reads in the same way (RFC 9110, 5.5 and 5.6.2). */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e]*$/
const base64Text = /^[A-Za-z0-9+/]*={0,2}$/

export function isHeader(name: string, value: string): boolean {
  return headerName.test(name) && headerValue.test(value)
}

/** A response object whose members are checked. */
export interface FunctionResponse {
  /** Status code; undefined when the function sets none. */
  readonly status: number | undefined
  /** Headers that the function sets, with names in their usual case. Of equal names the last one counts. */
  readonly headers: Readonly<Record<string, string>>
  readonly content: Content
  /** Whether a list function wants no further rows. */
  readonly stop: boolean
}

type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'json'; readonly json: string | Uint8Array }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }

/** What the server adds to the response of a function. */
export interface ResponseFrame {
  /** Status code of a response whose function sets none; 200 by default. */
  readonly status?: number
  /** Content type of a text for which the function names none. */
  readonly textType: string
  /** Headers that replace those of the function. */
  readonly headers?: Readonly<Record<string, string>>
  /** True when the response acknowledges a write, so that it must be sent even if other large responses are waiting. */
  readonly acknowledgesWrite?: boolean
}

/**
 * Parses what a function returned, or a part of it.
 *
 * @param json text, or UTF-8
 * @throws FunctionError `render_error` when it is not JSON, is nested too deeply, or has too many values
 * @throws ApiError `service_unavailable` when it needs too much memory beside other large bodies
 */
export function parseReturned(
  json: string | Uint8Array, request: RequestContext, services: Services,
): Promise<unknown> {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json
  return acceptReturned(request, () => parseBody(bytes, request, services))
}

/** Reads what a function returned. Errors in the JSON become errors of the function. */
export async function acceptReturned<Result>(request: RequestContext, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    request.signal.throwIfAborted()
    if (!(error instanceof ApiError) || error.status === 503) throw error
    throw invalidResponse(`What the function returned cannot be read: ${error.reason}`, error)
  }
}

/**
 * Checks a response object, or a text, which is the body.
 *
 * @throws FunctionError 500 `render_error` that names the member that is wrong
 */
export function readResponse(value: unknown): FunctionResponse {
  if (typeof value === 'string') return { status: undefined, headers: {}, content: textOf(value), stop: false }
  if (!isJsonObject(value)) throw invalidResponse('A function must return a text or a response object')
  const unknown = Object.keys(value).find(name => !members.has(name))
  if (unknown !== undefined) throw invalidResponse(`A response object has no member ${JSON.stringify(unknown)}`)
  const { code, headers = {}, stop } = value
  if (stop !== undefined && typeof stop !== 'boolean') throw invalidResponse('stop of a response is a boolean')
  return { status: statusOf(code), headers: headersOf(headers), content: contentOf(value), stop: stop === true }
}

/** 1xx codes do not end a response. */
function statusOf(code: unknown): number | undefined {
  if (code === undefined) return undefined
  if (Number.isInteger(code) && (code as number) >= 200 && (code as number) <= 599) return code as number
  throw invalidResponse(`The code of a response is an integer from 200 to 599, and not ${brief(code)}`)
}

function headersOf(headers: unknown): Record<string, string> {
  if (!isJsonObject(headers)) throw invalidResponse('The headers of a response are an object')
  const checked = new Map<string, string>()
  let bytes = 0
  for (const [given, value] of Object.entries(headers)) {
    const name = usualCase(given)
    const text = headerText(name, value)
    bytes += name.length + text.length
    checked.set(name, text)
  }
  if (bytes <= headerBytesMax) return Object.fromEntries(checked)
  throw invalidResponse(`The headers of a response have ${bytes} bytes, the limit is ${headerBytesMax}`)
}

function headerText(name: string, value: unknown): string {
  if (!headerName.test(name)) throw invalidResponse(`${brief(name)} is not the name of a header`)
  if (connectionHeaders.has(name) || serverHeaders.has(name)) {
    throw invalidResponse(`A function must not set the header ${name}`)
  }
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  if (name === 'Set-Cookie' && String(text).includes(sessionCookieName)) {
    throw invalidResponse('A function must not set the session cookie')
  }
  if (typeof text === 'string' && headerValue.test(text)) return text
  throw invalidResponse(`${brief(value)} is not a value of the header ${name}`)
}

function contentOf({ json, base64, body }: JsonObject): Content {
  if (json !== undefined) return { kind: 'json', json: JSON.stringify(json) }
  if (base64 === undefined) return textOf(body ?? '')
  if (typeof base64 === 'string' && base64.length % 4 === 0 && base64Text.test(base64)) {
    return { kind: 'bytes', bytes: Buffer.from(base64, 'base64') }
  }
  throw invalidResponse('The member base64 of a response object is not Base64')
}

function textOf(body: unknown): Content {
  if (typeof body !== 'string') throw invalidResponse(`The body of a response is a text, and not ${brief(body)}`)
  return { kind: 'text', text: body }
}

export function invalidResponse(reason: string, cause?: unknown): FunctionError {
  return new FunctionError(500, 'render_error', `${reason}.`, cause)
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 80 ? `${text.slice(0, 80)}...` : text
}

/**
 * Sends the response of a function. Browsers run no scripts of it unless `csp/showlist_enable` is false.
 *
 * @throws ApiError as `send`
 */
export function sendResponse(
  { status, headers, content }: FunctionResponse, frame: ResponseFrame, request: RequestContext, services: Services,
): void {
  const code = status ?? frame.status ?? 200
  const all = responseHeaders(headers, content, frame, request, services)
  send(request, services, code, all, hasContent(code) ? bodyOf(content) : '', frame.acknowledgesWrite)
}

/** A response 205 has no content (RFC 9110, 15.3.6). */
function hasContent(code: number): boolean {
  return hasBody(code) && code !== 205
}

function bodyOf(content: Content): string | Uint8Array {
  switch (content.kind) {
    case 'text': return content.text
    case 'json': return jsonLine(content.json)
    case 'bytes': return content.bytes
  }
}

/** Returns the headers of a function, completed by those of the server. */
function responseHeaders(
  headers: FunctionResponse['headers'], { kind }: Pick<Content, 'kind'>, frame: ResponseFrame, request: RequestContext,
  services: Services,
): HttpHeaders {
  const { options } = services
  const types = { text: frame.textType, json: 'application/json', bytes: 'application/binary' }
  const defaults: HttpHeaders = {
    'Content-Type': types[kind], ...(kind === 'json' && { 'Cache-Control': 'must-revalidate' }),
  }
  const ours: HttpHeaders = {
    ...plainHeaders(request, services), ...frame.headers,
    ...withoutSniffing,
    ...(options.sandboxResponses && { 'Content-Security-Policy': options.responsePolicy }),
  }
  return merged(defaults, headers, ours)
}

/** Later headers replace earlier ones of the same name in any case. */
function merged(...sets: readonly HttpHeaders[]): HttpHeaders {
  const headers = new Map<string, readonly [name: string, value: HttpHeaders[string]]>()
  for (const set of sets) {
    for (const [name, value] of Object.entries(set)) headers.set(name.toLowerCase(), [name, value])
  }
  return Object.fromEntries(headers.values())
}
