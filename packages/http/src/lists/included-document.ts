/** The documents that `include_docs` adds to the rows of lists and views. */
import type { Leaf, SplicedDocument } from '@sectional/core'
import type { ListedDocument } from '@sectional/cluster'
import { noFlags, splicedRevision, writeRevision } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { DocumentWriter } from './list-writer.ts'
import type { RowParameters } from './row-parameters.ts'

/** Documents that are looked up in one call. */
export const documentsPerLookup = 200

/**
 * Returns a document as a member of a row; null when its body is not available any more.
 *
 * @param document its conflicts are shown when it has `leaves`
 * @param parameters `attachments`: include the content of attachments; `encodingInfo`: describe how it is stored
 */
export function includedDocument(
  { id, revision, body, leaves, attachments }: ListedDocument,
  { attachments: inline, encodingInfo }: Pick<RowParameters, 'attachments' | 'encodingInfo'>,
  request: RequestContext, services: Services,
): SplicedDocument | DocumentWriter | null {
  if (body === undefined) return null
  if (attachments === undefined) return { id, revision, body, extra: conflictsMember(leaves) }
  const shown = { id, revision, body, deleted: false, attachments, ...(leaves && { leaves }) }
  const flags = { ...noFlags, conflicts: leaves !== undefined, attachments: inline, encodingInfo }
  return inline ? writer => writeRevision(writer, shown, flags, request, services) : splicedRevision(shown, flags)
}

function conflictsMember(leaves: readonly Leaf[] | undefined): string {
  if (leaves === undefined || leaves.length < 2) return ''
  const losers = leaves.slice(1).filter(leaf => !leaf.deleted).map(leaf => leaf.revision)
  return losers.length === 0 ? '' : `"_conflicts":${JSON.stringify(losers)}`
}
