/** Reads the definitions of views from the design documents of a database. */
import { parseJsonObject, viewDefinition, type IndexDefinition, type JsonObject } from '@sectional/core'
import { noFlags, openWinner } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * Returns the members of a design document.
 *
 * @param name without `_design/`
 * @throws ApiError `missing`, `deleted`
 */
export async function openDesignDocument(
  name: string, request: RequestContext, services: Services,
): Promise<JsonObject> {
  const { body } = await openWinner(`_design/${name}`, noFlags, {}, request, services)
  return parseJsonObject(body)
}

/** @throws ApiError as `openDesignDocument` and `viewDefinition` */
export async function openDefinition(
  designName: string, viewName: string, request: RequestContext, services: Services,
): Promise<IndexDefinition> {
  return viewDefinition(await openDesignDocument(designName, request, services), viewName, request.database)
}
