/** `_design/{name}/_info` and `_view_cleanup`. */
import { hash } from 'node:crypto'
import { indexId, rootCollationVersion, type IndexDefinition } from '@sectional/core'
import { currentDesignDocument } from '../documents/current-design-document.ts'
import { readBody } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import { definitionsOf, usedDefinitions, viewsOf } from '../views/view-definitions.ts'
import type { Handler } from '../pipeline/resource.ts'

export const getDesignInfo: Handler = async (request, services) => {
  const name = request.params[0]!
  const document = await currentDesignDocument(name, request, services)
  const { database } = request
  const definitions = definitionsOf(document, database)
  const info = await services.coordinator.viewInfo(database, definitions, request)
  const { file, external, active } = info.sizes
  sendJson(request, services, 200, {
    name,
    view_index: {
      updates_pending: info.pending,
      // Rows and positions are written together, and no index is compacted by request.
      waiting_commit: false,
      waiting_clients: info.waiting,
      updater_running: info.building,
      update_seq: info.readSequence,
      sizes: { file, external, active },
      signature: signatureOf(viewsOf(document, database), definitions),
      // An index reads purges in the order of the changes, so that they have no numbers of their own.
      purge_seq: 0,
      language: document.members['language'] ?? 'javascript',
      compact_running: false,
      collator_versions: [rootCollationVersion.collator],
      ...(info.failedCount > 0 && { failed_documents: { count: info.failedCount, examples: info.failures } }),
    },
  })
}

/** Removes the indexes that no design document of the database needs. */
export const postViewCleanup: Handler = async (request, services) => {
  await readBody(request, services)
  await services.coordinator.cleanViews(request.database, await usedDefinitions(request, services), request)
  sendJson(request, services, 202, { ok: true })
}

/** Two design documents have equal signatures when they need the same indexes, and their views have the same names. */
function signatureOf(views: ReadonlyMap<string, IndexDefinition>, definitions: readonly IndexDefinition[]): string {
  const named = [...views].map(([name, view]) => `${indexId(view)} ${name}`)
  return hash('md5', [...named, ...new Set(definitions.map(indexId))].toSorted().join('\n'), 'hex')
}
