/** Finds functions in design documents. */
import type { DatabaseRecord } from '@sectional/cluster'
import { ApiError, designPrefix, isJsonObject, parseJsonObject, type JsonObject } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import { noFlags, openWinner, showRevision, type ShownRevision } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** The members of a design document that contain functions for requests. Of a view it is the map function. */
export type FunctionMember = 'shows' | 'updates' | 'lists' | 'filters' | 'views'

/** A function of a design document. */
export interface DesignFunction {
  readonly called: SandboxFunction
  /** The revision of the design document. */
  readonly revision: string
}

/**
 * Returns a function of a design document. `require` and `this` of the function are the whole design document.
 *
 * The design document is taken from the cache of this node. When that lacks the function, the design document is read
 * from its replicas, because another node may have written it a moment ago.
 *
 * @param design name of the design document, without `_design/`
 * @throws ApiError `missing`, `deleted`; `not_found` when the design document has no such function;
 * `unknown_query_language`; the errors of the coordinator
 */
export async function openDesignFunction(
  design: string, member: FunctionMember, name: string, request: RequestContext, services: Services,
): Promise<DesignFunction> {
  const id = designPrefix + design
  const { database } = request
  const cached = await services.coordinator.designDocument(database, id)
  const source = cached === null ? undefined : sourceOf(cached.members, member, name)
  if (cached !== null && source !== undefined) {
    return designFunction(cached, source, database)
  }
  const shown = await openWinner(id, noFlags, {}, request, services)
  const members = parseJsonObject(shown.body)
  const found = sourceOf(members, member, name)
  if (found === undefined) throw missingKey(isJsonObject(members[member]) ? name : member)
  return designFunction(shown, found, database)
}

/** @throws ApiError `unknown_query_language` */
function sourceOf(members: JsonObject, member: FunctionMember, name: string): string | undefined {
  const { language = 'javascript', [member]: functions } = members
  if (!isJsonObject(functions) || !Object.hasOwn(functions, name)) return undefined
  const { [name]: named } = functions
  const source = member === 'views' && isJsonObject(named) ? named['map'] : named
  if (typeof source !== 'string') return undefined
  if (language !== 'javascript') throw new ApiError('unknown_query_language', String(language))
  return source
}

function designFunction(
  { id, revision, body, attachments = [] }: Omit<ShownRevision, 'deleted'>, source: string,
  { incarnation }: DatabaseRecord,
): DesignFunction {
  const shown = { id, revision, deleted: false, body, ...(attachments.length > 0 && { attachments }) }
  const modules = showRevision(shown, noFlags).json.toString()
  return { called: { database: incarnation, designDocument: id, modules, source }, revision }
}

/**
 * Returns the rewrite rules of a design document, or its rewrite function; null when it has neither.
 *
 * @param design name of the design document, without `_design/`
 * @throws ApiError `missing`, `deleted`, `unknown_query_language`
 */
export async function openRewrites(
  design: string, request: RequestContext, services: Services,
): Promise<readonly unknown[] | SandboxFunction | null> {
  const id = designPrefix + design
  const cached = await services.coordinator.designDocument(request.database, id)
  if (cached?.members['rewrites'] !== undefined) return rewritesOf(cached, cached.members, request)
  const shown = await openWinner(id, noFlags, {}, request, services)
  return rewritesOf(shown, parseJsonObject(shown.body), request)
}

function rewritesOf(
  document: Omit<ShownRevision, 'deleted'>, { language = 'javascript', rewrites }: JsonObject,
  { database }: RequestContext,
): readonly unknown[] | SandboxFunction | null {
  if (Array.isArray(rewrites)) return rewrites
  if (typeof rewrites !== 'string') return null
  if (language !== 'javascript') throw new ApiError('unknown_query_language', String(language))
  return designFunction(document, rewrites, database).called
}

function missingKey(name: string): ApiError {
  return new ApiError('not_found', `missing json key: ${name}`)
}
