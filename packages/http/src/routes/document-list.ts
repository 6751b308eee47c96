/** `_all_docs`, `_design_docs` and `_partition/{p}/_all_docs`, with `/queries` (docs/reference/lists.md). */
import { createHash } from 'node:crypto'
import type { DatabaseState } from '@sectional/cluster'
import { readJsonObject } from '../messages/body.ts'
import {
  designDocuments, documentQuery, onePartition, openDocumentRows, wholeDatabase, type DocumentQuery, type Scope,
} from '../lists/document-rows.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { listParameters, listQueryParameters } from '../lists/list-parameters.ts'
import { listBody, taggedHeaders } from '../lists/list-request.ts'
import { pathPartition } from '../lists/path-partition.ts'
import { rowQueries } from '../lists/row-parameters.ts'
import { ListWriter } from '../lists/list-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { Services } from '../services/services.ts'

export const listAllDocuments: Handler = (request, services) => list(wholeDatabase, request, services)
export const listDesignDocuments: Handler = (request, services) => list(designDocuments, request, services)
export const listPartition: Handler = (request, services) =>
  list(onePartition(pathPartition(request)), request, services)
export const queryAllDocuments: Handler = (request, services) => queries(wholeDatabase, request, services)
export const queryDesignDocuments: Handler = (request, services) => queries(designDocuments, request, services)
export const queryPartition: Handler = (request, services) =>
  queries(onePartition(pathPartition(request)), request, services)

async function list(within: Scope, request: RequestContext, services: Services): Promise<void> {
  const body = await listBody(request, services)
  const query = documentQuery(within, listParameters(request.query, body), request, services)
  const { updateSequence, fingerprint } = await services.coordinator.databaseState(request.database, request)
  const headers = taggedHeaders(fingerprint, JSON.stringify(query.parameters), request, services)
  if (headers === null) return
  if (request.head) return endHead(request, services, headers)
  const writer = new JsonWriter(request, services, 200, headers)
  await writeList(writer, query, updateSequence, request, services)
  writer.text('\n')
  await writer.end()
}

async function queries(within: Scope, request: RequestContext, services: Services): Promise<void> {
  const { turns } = services.runtime
  const digest = createHash('md5')
  // Read them in slices: there may be a hundred thousand queries.
  const asked = await turns.map(rowQueries(await readJsonObject(request, services)), member => {
    const query = documentQuery(within, listQueryParameters(request.query, member), request, services)
    digest.update(JSON.stringify(query.parameters))
    return query
  })
  const { updateSequence, fingerprint } = await services.coordinator.databaseState(request.database, request)
  const headers = taggedHeaders(fingerprint, digest.digest('hex'), request, services)
  if (headers === null) return
  const writer = new JsonWriter(request, services, 200, headers)
  writer.text('{"results":[\r\n')
  for (const [index, query] of asked.entries()) {
    if (index > 0) writer.text(',\r\n')
    await turns.pause()
    request.signal.throwIfAborted()
    await writeList(writer, query, updateSequence, request, services)
    await writer.flushFull()
  }
  writer.text('\r\n]}\n')
  await writer.end()
}

async function writeList(
  writer: JsonWriter, query: DocumentQuery, updateSequence: DatabaseState['updateSequence'], request: RequestContext,
  services: Services,
): Promise<void> {
  const { head, rows } = await openDocumentRows(query, updateSequence, request, services)
  const list = new ListWriter(writer, head)
  for await (const page of rows) {
    for (const row of page) {
      const full = list.row(row)
      if (full !== undefined) await full
    }
  }
  list.end()
}
