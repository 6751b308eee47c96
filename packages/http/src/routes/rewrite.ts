/** `_design/{name}/_rewrite/{path}`: answers a request as one for another path. */
import { ApiError, isJsonObject, type JsonObject } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import { openRewrites } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { parseReturned, readResponse, sendResponse } from '../design-functions/function-response.ts'
import { readRequestBody, requestObject } from '../design-functions/request-object.ts'
import { applyRules, type RewrittenPath } from '../design-functions/rewrite-rules.ts'
import { rewriteRequest } from '../design-functions/rewrite-target.ts'
import { FunctionError } from '../messages/function-error.ts'
import type { Handler } from '../pipeline/resource.ts'
import { Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import { splitPath } from '../request/request-path.ts'
import type { Services } from '../services/services.ts'

const methodName = /^[A-Z]+$/

/**
 * Returns the handler of `_rewrite`.
 *
 * @param again dispatches the rewritten request, with all checks that a request of the same user to that path passes
 */
export function createRewrite(again: Handler): Handler {
  return async (request, services) => {
    if (request.rewrites >= services.options.rewritesMax) {
      throw new ApiError('bad_request', 'Exceeded rewrite recursion limit')
    }
    const rewrites = await openRewrites(request.params[0]!, request, services)
    if (rewrites === null) throw new ApiError('rewrite_error')
    if ('source' in rewrites) {
      if (!await rewriteByFunction(rewrites, request, services)) return
    } else {
      rewriteByRules(rewrites, request, services)
    }
    await again(request, services)
  }
}

/** @throws ApiError `missing` when no rule matches */
function rewriteByRules(rules: readonly unknown[], request: RequestContext, services: Services): void {
  // `_design%2Fname` is one segment.
  const path = request.segments.slice(request.segments[1] === '_design' ? 4 : 3)
  const rewritten = applyRules(rules, path, request, services.options.secureRewrites)
  if (rewritten === null) throw new ApiError('missing')
  rewriteRequest(request, rewritten, {}, services)
}

/** Returns false when the function has answered the request itself. */
async function rewriteByFunction(
  called: SandboxFunction, request: RequestContext, services: Services,
): Promise<boolean> {
  const body = await readRequestBody(request, services)
  const argumentList = `[${await requestObject({ id: null, body }, request, services)}]`
  const [outcome] = await outcomeOf(called, services.runtime.sandbox.call(called, [argumentList]))
  const returned = await parseReturned(valueOf(outcome!, 'rewrite_error'), request, services)
  if (returned === null || returned === false || returned === '') throw new ApiError('rewrite_error')
  const result: unknown = typeof returned === 'string' ? { path: returned } : returned
  if (!isJsonObject(result)) throw failed('A rewrite function must return a path or an object.')
  const { code, headers, body: text } = result
  if (code !== undefined) {
    const response = { code, headers: headers ?? {}, body: text ?? '' }
    sendResponse(readResponse(response), { textType: 'text/plain; charset=utf-8' }, request, services)
    return false
  }
  rewriteRequest(request, pathOf(result, request, services), {
    ...(result['method'] !== undefined && { method: methodOf(result) }), headers: headersOf(result),
    body: text === undefined ? body : bodyOf(text),
  }, services)
  return true
}

/** Returns path and query that a function returned. The query of the request stays unless the function names one. */
function pathOf({ path, query }: JsonObject, request: RequestContext, services: Services): RewrittenPath {
  if (typeof path !== 'string') throw failed('Rewrite result must produce a new path.')
  const mark = path.indexOf('?')
  const segments = splitPath(`/${mark < 0 ? path : path.slice(0, mark)}`, services.options.plusIsSpace)
  const named = mark < 0 ? [] : Query.parse(path.slice(mark + 1)).entries()
  if (query === undefined) return { segments, query: new Map([...request.query.entries(), ...named]) }
  if (!isJsonObject(query)) throw failed("The member 'query' of a rewrite is an object.")
  const given = Object.entries(query).map(([name, value]): [string, string] => [name, textOf(value)])
  return { segments, query: new Map([...given, ...named]) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function methodOf({ method }: JsonObject): string {
  if (typeof method === 'string' && methodName.test(method)) return method
  throw failed("The member 'method' of a rewrite is the name of a method in capital letters.")
}

function headersOf({ headers = {} }: JsonObject): Record<string, string> {
  if (!isJsonObject(headers)) throw failed("The member 'headers' of a rewrite is an object.")
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, textOf(value)]))
}

function bodyOf(body: unknown): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body)
  throw failed("The member 'body' of a rewrite is a text.")
}

function failed(reason: string): FunctionError {
  return new FunctionError(500, 'rewrite_error', reason)
}
