/** Reads the rows of a view for a list function. */
import { decodeReduced, decodeViewGroup, spliceDocument, type SplicedDocument } from '@sectional/core'
import type { RespondArguments } from '@sectional/runtime'
import { failedGroupMembers, groupMembers, viewRowMembers, type DocumentWriter } from '../lists/list-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { OpenedGroups, OpenedRows, OpenedView } from './view-answer.ts'

interface RowsLimit { readonly bytes: number; readonly setting: string }

/** The members of a call of the sandbox. */
export type ListRows = Pick<RespondArguments, 'rows' | 'rowsLeft'>

/**
 * Reads the rows until the view ends, or until they have more bytes than a list function may get. They count against
 * the node's budget of bodies until the request ends.
 *
 * @param limit number of bytes of the rows, and the option that sets it
 * @throws ApiError `service_unavailable` when the rows do not fit into the budget now, and as the rows of the answer
 */
export async function readListRows(
  opened: OpenedView, limit: RowsLimit, request: RequestContext, { admission }: Services,
): Promise<ListRows> {
  const rows: string[] = []
  let bytes = 0
  for await (const texts of opened.kind === 'rows' ? rowTexts(opened) : groupTexts(opened)) {
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

async function* rowTexts({ windows }: OpenedRows): AsyncGenerator<readonly string[], void, undefined> {
  for await (const { rows, documents } of windows()) {
    yield rows.map(({ id, key, value }, index) => {
      const document = documents?.[index]
      const end = document === undefined ? '}' : `,"doc":${documentText(document)}}`
      return viewRowMembers(id, key, value) + end
    })
  }
}

/** Returns a document without line breaks, which a stored document may have between its members. */
function documentText(document: SplicedDocument | DocumentWriter | null): string {
  if (document === null) return 'null'
  if (typeof document === 'function') throw new Error('rows of list functions do not include attachments')
  return spliceDocument(document).toString().replaceAll('\n', ' ')
}

async function* groupTexts({ answer }: OpenedGroups): AsyncGenerator<readonly string[], void, undefined> {
  for await (const page of answer.rows) yield page.map(({ value }) => groupText(value))
}

function groupText(value: Uint8Array): string {
  const { key, state } = decodeViewGroup(value)
  const reduced = decodeReduced(state)
  const members = reduced.failure === undefined
    ? groupMembers(key ?? 'null', reduced.json) : failedGroupMembers(key ?? 'null', reduced.failure)
  return `${members}}`
}
