/** Reads the definitions of views from the design documents of a database. */
import { DesignDocument } from '@sectional/cluster'
import { ApiError, viewDefinition, viewDefinitions, type IndexDefinition, type IndexedDatabase } from '@sectional/core'
import { currentDesignDocument } from '../documents/current-design-document.ts'
import { indexesOf } from '../find/stored-indexes.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { QueriedView } from './view-parameters.ts'

/**
 * Returns the definition of a view from the cache of design documents. When that has no such view, its replicas are
 * asked, because another node may have just written it.
 *
 * @param designName without `_design/`
 * @throws ApiError as `currentDesignDocument` and `viewDefinition`
 */
export async function openDefinition(
  designName: string, viewName: string, request: RequestContext, services: Services,
): Promise<IndexDefinition> {
  const definitionOf = await findDefinition(designName, viewName, request, services)
  return definitionOf()
}

/** The names of a view. */
export interface ViewName {
  /** Without `_design/`. */
  readonly design: string
  readonly view: string
}

/**
 * Returns the definition of a view of which a query has failed, since the view may have been changed meanwhile: then
 * the cleanup of views has removed the indexes of the query.
 *
 * @throws ApiError as `openDefinition` with the status 404, when the view was deleted; otherwise `error`, also when the
 * definition is not the cause
 */
export async function definitionAfter(
  error: unknown, { design, view }: ViewName, request: RequestContext, services: Services,
): Promise<IndexDefinition> {
  if (!(error instanceof ApiError) || error.status < 500) throw error
  return openDefinition(design, view, request, services).catch((other: unknown) => {
    throw other instanceof ApiError && other.status === 404 ? other : error
  })
}

/**
 * Like `openDefinition`, but returns a function that returns the definition. It throws the errors of `viewDefinition`,
 * because in CouchDB other errors of a request come before those and after those of the design document.
 *
 * @throws ApiError as `currentDesignDocument`
 */
export async function findDefinition(
  designName: string, viewName: string, request: RequestContext, services: Services,
): Promise<() => IndexDefinition> {
  const { database } = request
  const document = await services.coordinator.designDocument(database, `_design/${designName}`)
  const cached = document && definitionIn(document, viewName, database)
  if (cached) return () => cached
  const current = await currentDesignDocument(designName, request, services)
  return () => definitionIn(current, viewName, database) ?? viewDefinition(current.members, viewName, database)
}

/** Mango's indexes can be queried like views: their rows are those of a view that is reduced by `_count`. */
function definitionIn(
  document: DesignDocument, viewName: string, database: IndexedDatabase,
): IndexDefinition | undefined {
  return viewsOf(document, database).get(viewName)
    ?? indexesOf(document, database).find(({ name }) => name === viewName)?.definition
}

/**
 * Returns the definitions of the views that can be queried, by their names. A definition is the same object for each
 * query as long as the design document is in the cache of the node.
 */
export function viewsOf(document: DesignDocument, database: IndexedDatabase): ReadonlyMap<string, IndexDefinition> {
  return document.derived(database.partitioned ? partitionedViews : globalViews)
}

const partitionedViews = ({ members }: DesignDocument): ReadonlyMap<string, IndexDefinition> =>
  viewDefinitions(members, { partitioned: true })
const globalViews = ({ members }: DesignDocument): ReadonlyMap<string, IndexDefinition> =>
  viewDefinitions(members, { partitioned: false })

/** Returns the definitions of the views, and of the indexes of queries, of all design documents of the database. */
export async function usedDefinitions(
  request: RequestContext, { coordinator }: Services,
): Promise<readonly IndexDefinition[]> {
  const { database } = request
  const { rows } = await coordinator.listDocuments(database, {
    start: { id: '_design/', inclusive: true }, end: { id: '_design0', inclusive: false }, descending: false, skip: 0,
    limit: null, body: true, leaves: false,
  }, request)
  const definitions: IndexDefinition[] = []
  for await (const page of rows) {
    for (const { id, revision, body } of page) {
      if (body !== undefined) definitions.push(...definitionsOf(new DesignDocument(id, revision, body), database))
    }
  }
  return definitions
}

/** Returns the definitions of all indexes that a design document needs. */
export function definitionsOf(document: DesignDocument, database: IndexedDatabase): readonly IndexDefinition[] {
  return [
    ...viewsOf(document, database).values(), ...indexesOf(document, database).map(({ definition }) => definition),
  ]
}

/** @param partition the partition that the path names */
export function queriedView(
  { reduce, options }: IndexDefinition, partition: string | undefined, { options: limits }: Services,
): QueriedView {
  const isPartitioned = options['partitioned'] === true
  return {
    hasReduce: reduce !== null, isPartitioned,
    limitMax: isPartitioned ? limits.partitionQueryRowsMax : limits.queryRowsMax,
    ...(partition !== undefined && { partition }),
  }
}
