/** What the planner would recommend, and why it rejected each index (docs/reference/find.md#advice). */
import type { IndexSuggestion, RejectedIndex, RejectionReason } from '@sectional/core'
import type { DatabaseRecord } from '@sectional/cluster'
import type { StoredIndex } from './stored-indexes.ts'

/** The request that creates an index. */
export interface IndexCreation {
  readonly method: 'POST'
  readonly path: string
  readonly body: IndexSuggestion
}

/** The member `advice` of an answer. */
export interface Advice {
  /** null when no index would serve the query better than what is there. */
  readonly create_index: IndexCreation | null
  readonly rejected?: readonly { readonly ddoc: string | null; readonly name: string; readonly why: string }[]
}

/** @param rejected the indexes that were rejected; undefined: there is no plan, and the answer has no such member */
export function adviceOf(
  suggestion: IndexSuggestion | null, rejected: readonly RejectedIndex<StoredIndex>[] | undefined,
  { name }: DatabaseRecord,
): Advice {
  return {
    create_index: suggestion && { method: 'POST', path: `/${encodeURIComponent(name)}/_index`, body: suggestion },
    ...(rejected && {
      rejected: rejected.map(({ index, reason }) => ({
        ddoc: index?.ddoc ?? null, name: index?.name ?? '_all_docs', why: rejections[reason],
      })),
    }),
  }
}

const rejections: Readonly<Record<RejectionReason, string>> = {
  is_partial: 'The index is partial, so it may lack matching documents. Name it in use_index to read it all the same.',
  scope_mismatch: 'The index is ordered by partition and the query is not about one partition, or the reverse.',
  field_mismatch: 'Documents that lack a field of the index have no row in it, and the selector does not require all '
    + 'of these fields.',
  sort_order_mismatch: 'The rows of the index are not in the order that sort asks for.',
  excluded_by_user: 'The request names another index in use_index.',
  unfavored_type: 'An index is preferred to reading all documents.',
  less_overlap: 'The chosen index begins with more fields of the selector, so that fewer rows are read.',
  more_rows: 'The chosen index has fewer rows in the range of the selector.',
  too_many_fields: 'The chosen index serves the query as well and has fewer fields.',
  alphabetically_comes_after: 'The chosen index serves the query as well and comes first by name.',
}

/** Most characters of the header. A longer suggestion is only in the body of the answer, and only on request. */
const headerLengthMax = 2048

/**
 * Returns the header with the body of the request that creates the suggested index. Characters outside of ASCII are
 * escaped, as JSON allows it.
 */
export function suggestionHeaders(suggestion: IndexSuggestion | null): Record<string, string> {
  if (suggestion === null) return {}
  const text = JSON.stringify(suggestion)
    .replace(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return text.length > headerLengthMax ? {} : { 'X-Suggested-Index': text }
}
