/** Finds functions in design documents. */
import type { DatabaseRecord, DesignDocument } from '@sectional/cluster'
import { ApiError, designPrefix, isJsonObject, type JsonObject } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import { currentDesignDocument } from '../documents/current-design-document.ts'
import { noFlags, showRevision } from '../documents/document-reading.ts'
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
 * The design document is taken from the cache of this node. When that lacks the function, its replicas are asked,
 * because another node may have written it a moment ago.
 *
 * @param design name of the design document, without `_design/`
 * @throws ApiError `missing`, `deleted`; `not_found` when the design document has no such function;
 * `unknown_query_language`; the errors of the coordinator
 */
export async function openDesignFunction(
  design: string, member: FunctionMember, name: string, request: RequestContext, services: Services,
): Promise<DesignFunction> {
  const { database } = request
  const cached = await services.coordinator.designDocument(database, designPrefix + design)
  const source = cached === null ? undefined : sourceOf(cached.members, member, name)
  if (cached !== null && source !== undefined) {
    return designFunction(cached, source, database)
  }
  const current = await currentDesignDocument(design, request, services)
  const found = sourceOf(current.members, member, name)
  if (found === undefined) throw missingKey(isJsonObject(current.members[member]) ? name : member)
  return designFunction(current, found, database)
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

function designFunction(document: DesignDocument, source: string, { incarnation }: DatabaseRecord): DesignFunction {
  const { id: designDocument, revision } = document
  const modules = document.derived(modulesOf)
  return { called: { database: incarnation, designDocument, modules, source }, revision }
}

/** Returns the whole design document as text, which is made once, because it can be large. */
function modulesOf({ id, revision, body, attachments }: DesignDocument): string {
  const shown = { id, revision, deleted: false, body, ...(attachments.length > 0 && { attachments }) }
  return showRevision(shown, noFlags).json.toString()
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
  const cached = await services.coordinator.designDocument(request.database, designPrefix + design)
  if (cached?.members['rewrites'] !== undefined) return rewritesOf(cached, request)
  return rewritesOf(await currentDesignDocument(design, request, services), request)
}

function rewritesOf(
  document: DesignDocument, { database }: RequestContext,
): readonly unknown[] | SandboxFunction | null {
  const { language = 'javascript', rewrites } = document.members
  if (Array.isArray(rewrites)) return rewrites
  if (typeof rewrites !== 'string') return null
  if (language !== 'javascript') throw new ApiError('unknown_query_language', String(language))
  return designFunction(document, rewrites, database).called
}

function missingKey(name: string): ApiError {
  return new ApiError('not_found', `missing json key: ${name}`)
}
