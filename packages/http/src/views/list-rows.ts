/** Reads the rows of a view, or of all documents, for a list function. */
import { spliceDocument, type SplicedDocument } from '@sectional/core'
import type { RespondArguments } from '@sectional/runtime'
import type { DocumentRows } from '../lists/document-rows.ts'
import {
  documentRowMembers, failedGroupMembers, groupMembers, viewRowMembers, type DocumentWriter,
} from '../lists/list-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { Group, OpenedGroups, OpenedRows, OpenedView } from './view-answer.ts'

interface RowsLimit { readonly bytes: number; readonly setting: string }

/** The members of a call of the sandbox. */
export type ListRows = Pick<RespondArguments, 'rows' | 'rowsLeft'>

/**
 * Reads the rows until they end, or until they have more bytes than a list function may get. They count against the
 * node's budget of bodies until the request ends.
 *
 * @param pages rows as JSON texts
 * @param limit number of bytes of the rows, and the option that sets it
 * @throws ApiError `service_unavailable` when the rows do not fit into the budget now, and as the rows of the answer
 */
export async function readListRows(
  pages: AsyncIterable<readonly string[]>, limit: RowsLimit, request: RequestContext, { admission }: Services,
): Promise<ListRows> {
  const rows: string[] = []
  let bytes = 0
  for await (const texts of pages) {
    for (const text of texts) {
      const added = Buffer.byteLength(text)
      bytes += added
      if (bytes > limit.bytes) return { rows, rowsLeft: tooManyRows(limit) }
      admission.reserveBody(request, added)
      rows.push(text)
    }
  }
  return { rows }
}

/** Returns what `getRow` throws in place of a row that the function does not get. */
function tooManyRows({ bytes, setting }: RowsLimit): string {
  return JSON.stringify(['error', 'too_many_rows', `A list function may read ${bytes} bytes of rows (${
    setting}). Ask for fewer rows with 'limit', 'startkey' and 'endkey'.`])
}

/** Returns the rows of a view as JSON texts. @param onFailed is called for each group that could not be reduced */
export function viewRowTexts(opened: OpenedView, onFailed: () => void): AsyncIterable<readonly string[]> {
  return opened.kind === 'rows' ? rowTexts(opened) : groupTexts(opened, onFailed)
}

async function* rowTexts({ windows }: OpenedRows): AsyncGenerator<readonly string[], void, undefined> {
  for await (const { rows, documents } of windows()) {
    yield rows.map(({ id, key, value }, index) => rowText(viewRowMembers(id, key, value), documents?.[index]))
  }
}

/** Returns the rows of a list of documents as JSON texts. */
export async function* documentRowTexts(
  { rows }: DocumentRows,
): AsyncGenerator<readonly string[], void, undefined> {
  for await (const page of rows) {
    yield page.map(row => rowText(documentRowMembers(row), 'unknown' in row ? undefined : row.doc))
  }
}

/** @param members the beginning of the row, without its end and without the document */
function rowText(members: string, document: SplicedDocument | DocumentWriter | null | undefined): string {
  return document === undefined ? `${members}}` : `${members},"doc":${documentText(document)}}`
}

/** Returns a document without line breaks, which a stored document may have between its members. */
function documentText(document: SplicedDocument | DocumentWriter | null): string {
  if (document === null) return 'null'
  if (typeof document === 'function') throw new Error('rows of list functions do not include attachments')
  return spliceDocument(document).toString().replaceAll('\n', ' ')
}

async function* groupTexts(
  { groups }: OpenedGroups, onFailed: () => void,
): AsyncGenerator<readonly string[], void, undefined> {
  for await (const page of groups()) yield page.map(group => groupText(group, onFailed))
}

function groupText({ key, reduced }: Group, onFailed: () => void): string {
  if (reduced.failure === undefined) return `${groupMembers(key, reduced.json)}}`
  onFailed()
  return `${failedGroupMembers(key, reduced.failure)}}`
}
