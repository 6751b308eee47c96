/** Finds the functions of design documents that changes feeds may have as filters. */
import { ApiError } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import { openDesignFunction } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { requestObject } from '../design-functions/request-object.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** A function that decides which documents pass. */
export interface FilterFunction {
  readonly called: SandboxFunction
  /**
   * Returns for each document, which is JSON text, whether it passes.
   *
   * @throws FunctionError when the function throws; SandboxError when the call fails as a whole
   */
  decide(documents: readonly Uint8Array[]): Promise<readonly boolean[]>
}

/**
 * Returns a filter function, which is called with each document and the request.
 *
 * @param path `{design document}/{name}`
 * @param body what the client sent; null for a GET request
 * @throws ApiError `bad_request` for another path, those of `openDesignFunction` and `requestObject`, and when the
 * function does not compile
 */
export async function filterFunction(
  path: string, body: Uint8Array | null, request: RequestContext, services: Services,
): Promise<FilterFunction> {
  const called = await openCompiled(path, 'filter', request, services)
  const req = await requestObject({ id: null, body }, request, services)
  return {
    called,
    decide: async documents => {
      const outcomes = await services.runtime.sandbox.filter(called, req, documents)
      return outcomes.map(outcome => valueOf(outcome) === 'true')
    },
  }
}

/**
 * Returns the map function of a view as a filter: documents pass for which it emits a row.
 *
 * @param path `{design document}/{view}`
 * @throws ApiError `bad_request` when there is no path, and otherwise as `filterFunction`
 */
export async function viewFunction(
  path: string | undefined, request: RequestContext, services: Services,
): Promise<FilterFunction> {
  if (path === undefined || path === '') throw new ApiError('bad_request', '`view` filter parameter is not provided.')
  const called = await openCompiled(path, 'view', request, services)
  return {
    called,
    decide: async documents => {
      const outcomes = await services.runtime.sandbox.map(called, documents)
      return outcomes.map(outcome => {
        switch (outcome.kind) {
          case 'rows': return outcome.rows.length > 0
          case 'tooManyRows': return true
          default: return valueOf(outcome) === 'true'
        }
      })
    },
  }
}

const escapes = /(?:%[0-9a-f]{2})+/gi

/**
 * Returns the names in a path. As in CouchDB, slashes may be doubled, leading or trailing, and the names are
 * percent-encoded, so that they may contain slashes. What encodes nothing stands for itself.
 */
export function namesIn(path: string): readonly string[] {
  return path.split('/').filter(part => part !== '').map(part => part.replace(escapes, decoded))
}

function decoded(escaped: string): string {
  try {
    return decodeURIComponent(escaped)
  } catch {
    return escaped
  }
}

/** Finds a function and compiles it, so that an error is reported before the feed begins. */
async function openCompiled(
  path: string, kind: 'filter' | 'view', request: RequestContext, services: Services,
): Promise<SandboxFunction> {
  if (!path.isWellFormed()) throw new ApiError('bad_request', `\`${kind}\` must be valid UTF-8.`)
  const parts = namesIn(path)
  const [design, name] = parts
  if (parts.length !== 2 || design === undefined || name === undefined) {
    throw new ApiError('bad_request', `\`${kind}\` must be of the form \`designname/${kind}name\``)
  }
  const { called } = await openDesignFunction(design, `${kind}s`, name, request, services)
  await outcomeOf(called, services.runtime.sandbox.compile(called))
  return called
}
