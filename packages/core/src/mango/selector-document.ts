/** Documents as selectors see them. */
import type { AttachmentRecord, Leaf } from '../contracts/shard-replica.ts'
import { asBuffer } from '../encoding/as-buffer.ts'
import { parseText } from '../json/json-text.ts'
import type { FieldPath } from '../selectors/field-path.ts'
import { placeField } from '../selectors/projection.ts'

export interface StoredDocument {
  readonly id: string
  readonly revision: string
  /** JSON object text, as stored. */
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
  /** All leaves, winner first, if the selector or the index sees `_conflicts`. */
  readonly leaves?: readonly Leaf[]
}

/**
 * Returns the members of a document with its `_id`, its `_rev`, the stubs of its `_attachments`, and the revisions of
 * its `_conflicts` when `leaves` has some that are not deleted.
 *
 * @throws SyntaxError when the body is not JSON
 */
export function selectorDocument(document: StoredDocument): Readonly<Record<string, unknown>> {
  return addSpecialMembers(parseText(asBuffer(document.body).toString()) as Record<string, unknown>, document)
}

/** Adds what `selectorDocument` adds to the members of the body. @returns the same object */
export function addSpecialMembers(
  document: Record<string, unknown>, { id, revision, attachments, leaves }: StoredDocument,
): Record<string, unknown> {
  document['_id'] = id
  document['_rev'] = revision
  if (attachments !== undefined) document['_attachments'] = attachmentStubs(attachments)
  const conflicts = leaves?.slice(1).filter(({ deleted }) => !deleted)
  if (conflicts !== undefined && conflicts.length > 0) {
    document['_conflicts'] = conflicts.map(leaf => leaf.revision)
  }
  return document
}

/**
 * Returns a document that has the fields of a row of an index, and its `_id`.
 *
 * @param values of the fields, in the order of `fields`
 */
export function rowDocument(
  id: string, fields: readonly FieldPath[], values: readonly unknown[],
): Readonly<Record<string, unknown>> {
  const document: Record<string, unknown> = {}
  fields.forEach((path, at) => placeField(document, path, values[at]))
  document['_id'] = id
  return document
}

function attachmentStubs(attachments: readonly AttachmentRecord[]): Record<string, unknown> {
  return Object.fromEntries(attachments.map(({ name, contentType, revpos, digest, length }) => [
    name, { content_type: contentType, revpos, digest: `md5-${digest}`, length, stub: true },
  ]))
}
