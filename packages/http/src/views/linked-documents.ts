/** The documents that `include_docs` adds to the rows of a view: those of the rows, or those that their values name. */
import {
  ApiError, checkDocumentId, formatRevision, isJsonObject, mapBounded, readRevision, type SplicedDocument,
} from '@sectional/core'
import { noFlags, shownRevision, splicedRevision } from '../documents/document-reading.ts'
import { includedDocument } from '../lists/included-document.ts'
import type { DocumentWriter } from '../lists/list-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { ViewParameters } from './view-parameters.ts'

/** Number of revisions of one request that are read at the same time. */
const revisionConcurrency = 16
const stubs = { attachments: false, encodingInfo: false }

/** The document that belongs into a row. */
interface Link {
  /** null: the value of the row names no document that can exist. */
  readonly id: string | null
  /** Any stored revision; absent: the winner. */
  readonly revision?: string
  /** Whether the value of the row names the document. It is then shown without conflicts, and with stubs. */
  readonly isNamed: boolean
}

type Included = SplicedDocument | DocumentWriter | null

/**
 * Returns the document of each row; null when there is no such document. A value with a member `_id` names another
 * document, as in CouchDB; with `_rev`, a revision of it, or without `_id` one of the row's own document.
 *
 * @param rows their values are JSON texts. At most `documentsPerLookup`, because all documents are in memory at once
 */
export async function linkedDocuments(
  rows: readonly { readonly id: string; readonly value: string }[], parameters: ViewParameters,
  request: RequestContext, services: Services,
): Promise<readonly Included[]> {
  const links = rows.map(row => linkOf(row, request))
  const ids = [...new Set(links.flatMap(({ id, revision }) => id === null || revision !== undefined ? [] : [id]))]
  const opened = ids.length === 0
    ? []
    : await services.coordinator.openDocuments(request.database, ids, { body: true }, request)
  const winners = new Map(ids.map((id, index) => [id, opened[index] ?? null]))
  return mapBounded(links, revisionConcurrency, async ({ id, revision, isNamed }): Promise<Included> => {
    if (id === null) return null
    if (revision !== undefined) return storedRevision({ id, revision, isNamed }, parameters, request, services)
    const winner = winners.get(id) ?? null
    if (winner === null || winner.leaves[0]!.deleted) return null
    const { body, attachments } = winner
    const leaves = parameters.conflicts && !isNamed ? winner.leaves : undefined
    const listed = { id, revision: winner.leaves[0]!.revision, body, attachments, leaves }
    return includedDocument(listed, isNamed ? stubs : parameters, request, services)
  })
}

function linkOf({ id, value }: { readonly id: string; readonly value: string }, request: RequestContext): Link {
  if (!value.startsWith('{') || !/"_(id|rev)"/.test(value)) return { id, isNamed: false }
  const link: unknown = JSON.parse(value)
  if (!isJsonObject(link)) return { id, isNamed: false }
  const { _id: named = id, _rev: revision } = link
  const isNamed = Object.hasOwn(link, '_id')
  if (typeof named !== 'string' || !isDocumentId(named, request)) return { id: null, isNamed }
  return { id: named, isNamed, ...(typeof revision === 'string' && { revision }) }
}

/** Whether a document with this id can exist in the database. */
function isDocumentId(id: string, { database: { partitioned } }: RequestContext): boolean {
  try {
    checkDocumentId(id, { partitioned })
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

async function storedRevision(
  { id, revision: text, isNamed }: { readonly id: string; readonly revision: string; readonly isNamed: boolean },
  parameters: ViewParameters, request: RequestContext, services: Services,
): Promise<Included> {
  const revision = readRevision(text)
  if (revision === null) return null
  const asked = { revisions: [formatRevision(revision)], latest: false }
  const found = (await services.coordinator.openRevisions(request.database, id, asked, request))?.[0]
  if (found === undefined || found.kind === 'missing') return null
  const shown = shownRevision(found.revision)
  if (isNamed) return splicedRevision(shown, noFlags)
  return shown.deleted ? null : includedDocument(shown, parameters, request, services)
}
