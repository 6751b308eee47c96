/** Writes the documents that a query has found. */
import {
  decodeViewRow, parseExactly, projectFields, readValue, rowDocument, smallJsonBytes, type FieldPath,
  type FoundDocument,
} from '@sectional/core'
import { noFlags, showRevision, splicedRevision, type ShownRevision } from '../documents/document-reading.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { Services } from '../services/services.ts'

/** What is shown of each document. */
export interface ShownFields {
  /** The fields to which documents are reduced; null: whole documents. */
  readonly fields: readonly FieldPath[] | null
  /** Show `_conflicts`, if the match has leaves. */
  readonly conflicts: boolean
  /** The columns of the index whose rows have all fields; null: documents were read. */
  readonly columns: readonly FieldPath[] | null
}

/** Writes one document. Await the result before the next one. */
export function writeFound(
  writer: JsonWriter, found: FoundDocument, { fields, conflicts, columns }: ShownFields, services: Services,
): Promise<void> | undefined {
  if (columns !== null) {
    const values = parseExactly(decodeViewRow(found.value).key) as readonly unknown[]
    writer.text(JSON.stringify(projectFields(rowDocument(found.id, columns, values), fields ?? [])))
    return undefined
  }
  const shown = shownDocument(found)
  const flags = conflicts ? { ...noFlags, conflicts } : noFlags
  if (fields === null) {
    writer.document(splicedRevision(shown, flags))
    return undefined
  }
  const { json } = showRevision(shown, flags)
  if (json.length > smallJsonBytes) return writeLarge(writer, json, fields, services)
  writer.text(JSON.stringify(projectFields(parseExactly(json.toString()), fields)))
  return undefined
}

async function writeLarge(
  writer: JsonWriter, json: Buffer, fields: readonly FieldPath[], { runtime }: Services,
): Promise<void> {
  const { value } = await runtime.turns.run(readValue(json, 0, 'exact'))
  writer.text(JSON.stringify(projectFields(value, fields)))
}

function shownDocument({ id, revision, body, attachments, leaves }: FoundDocument): ShownRevision {
  if (revision === undefined || body === undefined) throw new TypeError('the document of a match was not read')
  return { id, revision, deleted: false, body, ...(attachments && { attachments }), ...(leaves && { leaves }) }
}
