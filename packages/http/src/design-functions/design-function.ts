/** Finds functions in design documents. */
import { ApiError, isJsonObject, parseJsonObject } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import { noFlags, openWinner, showRevision } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** The members of a design document that contain functions for requests. */
export type FunctionMember = 'shows' | 'updates' | 'lists' | 'filters'

/** A function of a design document. */
export interface DesignFunction {
  readonly called: SandboxFunction
  /** The revision of the design document. */
  readonly revision: string
}

/**
 * Returns a function of a design document. `require` and `this` of the function are the whole design document.
 *
 * @param design name of the design document, without `_design/`
 * @throws ApiError `missing`, `deleted`; `not_found` when the design document has no such function;
 * `unknown_query_language`
 */
export async function openDesignFunction(
  design: string, member: FunctionMember, name: string, request: RequestContext, services: Services,
): Promise<DesignFunction> {
  const shown = await openWinner(`_design/${design}`, noFlags, {}, request, services)
  const modules = showRevision(shown, noFlags).json.toString()
  const { language = 'javascript', [member]: functions } = parseJsonObject(modules)
  if (!isJsonObject(functions)) throw missingKey(member)
  const source = Object.hasOwn(functions, name) ? functions[name] : undefined
  if (typeof source !== 'string') throw missingKey(name)
  if (language !== 'javascript') throw new ApiError('unknown_query_language', String(language))
  const { incarnation: database } = request.database
  return { called: { database, designDocument: shown.id, modules, source }, revision: shown.revision }
}

function missingKey(name: string): ApiError {
  return new ApiError('not_found', `missing json key: ${name}`)
}
