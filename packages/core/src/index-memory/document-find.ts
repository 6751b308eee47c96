/** The verb `find` in its simplest form: everything is examined before the first page of the answer. */
import { parseAggregateQuery } from '../aggregates/aggregate-query.ts'
import { Aggregation } from '../aggregates/aggregation.ts'
import type {
  FindProgress, FindRequest, FoundDocument, IndexDefinition, ReadDocuments, ScannedPlace,
} from '../contracts/index-replica.ts'
import { progressKeysMax, scanOrder } from '../contracts/index-replica.ts'
import type { CallContext, DocumentRow } from '../contracts/shard-replica.ts'
import { ReplicaError } from '../contracts/shard-replica.ts'
import { parseJson, parseJsonObject } from '../json/json-text.ts'
import { parseQueryIndex } from '../mango/query-index.ts'
import { queryRowValues } from '../mango/query-row.ts'
import { rowDocument, selectorDocument } from '../mango/selector-document.ts'
import { type FieldPath, parseFieldPaths } from '../selectors/field-path.ts'
import { parseSelector } from '../selectors/selector.ts'
import { matchesSelector } from '../selectors/selector-match.ts'
import type { IndexContent } from './index-content.ts'
import { readRows } from './row-ranges.ts'

interface ExaminedIndex { readonly definition: IndexDefinition; readonly content: IndexContent }

/** A row of an index, or the place of a document. */
interface Candidate { readonly place: ScannedPlace; readonly value: Uint8Array; readonly document?: DocumentRow }

/**
 * @param index undefined: the source is all documents
 * @param filter the ids of documents that may match; absent: any
 */
export async function findDocuments(
  documents: ReadDocuments, index: ExaminedIndex | undefined, request: FindRequest, context: CallContext,
  filter?: ReadonlySet<string>,
): Promise<readonly (FoundDocument | FindProgress)[]> {
  const selector = suitable(() => parseSelector(parseJson(request.selector)))
  const fields = index && suitable(() => parseFieldPaths(parseQueryIndex(index.definition).fields))
  const candidates = index === undefined
    ? await allDocuments(documents, request, context)
    : indexRows(index.content, request)
  const found: (FoundDocument | FindProgress)[] = []
  const { limit = Infinity, aggregate } = request
  const isListed = request.countOnly !== true && aggregate === undefined
  const query = aggregate === undefined ? undefined : suitable(() => parseAggregateQuery(parseJsonObject(aggregate)))
  let aggregation = query && new Aggregation(query)
  let matches = 0
  let since = { keysExamined: 0, documentsExamined: 0, matches: 0 }
  for (const [at, candidate] of candidates.entries()) {
    if (matches >= limit) break
    const covering = request.documents === 'none' ? fields : undefined
    const isLeftOut = filter?.has(candidate.place.id) === false
    const document = covering || isLeftOut
      ? undefined
      : candidate.document ?? await openRow(documents, candidate, context)
    since.keysExamined++
    if (document !== undefined) since.documentsExamined++
    const seen = covering && !isLeftOut ? coveredDocument(covering, candidate) : document && shown(document, request)
    if (seen !== undefined && !candidate.place.id.startsWith('_design/') && matchesSelector(selector, seen)) {
      matches++
      since.matches++
      aggregation?.add(seen)
      if (isListed) found.push(foundDocument(candidate, document, request))
    }
    if (since.keysExamined < progressKeysMax && matches < limit && at < candidates.length - 1) continue
    const groups = aggregation !== undefined && since.matches > 0 && { groups: aggregation.encode() }
    found.push({ kind: 'progress', ...candidate.place, ...since, ...groups })
    aggregation = query && new Aggregation(query)
    since = { keysExamined: 0, documentsExamined: 0, matches: 0 }
  }
  return found
}

async function allDocuments(
  documents: ReadDocuments, { source, descending, after }: FindRequest, context: CallContext,
): Promise<readonly Candidate[]> {
  if (source.kind !== 'documents') throw new ReplicaError('protocol', 'the source is not all documents')
  const candidates: Candidate[] = []
  const { start, end } = source
  const scan = { descending, body: true, leaves: true, ...(start && { start }), ...(end && { end }) }
  const order = scanOrder(descending)
  for await (const page of documents.scanDocuments(scan, context)) {
    for (const document of page) {
      const place = { range: 0, key: '', id: document.id, number: 0 }
      if (after === undefined || order(place, after) > 0) candidates.push({ place, value: new Uint8Array(0), document })
    }
  }
  return candidates
}

function indexRows(content: IndexContent, { source, descending, after }: FindRequest): readonly Candidate[] {
  if (source.kind !== 'index') throw new ReplicaError('protocol', 'the source is not an index')
  const read = { ...source, descending, ...(after && { after }) }
  return readRows(content.sorted(), read).map(({ range, key, id, number, value }) =>
    ({ place: { range, key, id, number }, value }))
}

/** Returns the document of a row in its newest state; undefined when it was deleted or purged. */
async function openRow(
  documents: ReadDocuments, { place: { id } }: Candidate, context: CallContext,
): Promise<DocumentRow | undefined> {
  const opened = await documents.openDocument({ id, body: true, tree: false }, context)
  const winner = opened?.leaves[0]
  return winner === undefined || winner.deleted ? undefined : { ...opened, id, revision: winner.revision }
}

function shown(
  { id, revision, body, attachments, leaves }: DocumentRow, { documents }: FindRequest,
): Readonly<Record<string, unknown>> | undefined {
  return body && selectorDocument({
    id, revision, body, ...(attachments && { attachments }), ...(documents === 'leaves' && leaves && { leaves }),
  })
}

function coveredDocument(
  fields: readonly FieldPath[], { place, value }: Candidate,
): Readonly<Record<string, unknown>> {
  return rowDocument(place.id, fields, queryRowValues(value))
}

function foundDocument(
  { place, value }: Candidate, document: DocumentRow | undefined, { documents }: FindRequest,
): FoundDocument {
  const found = { kind: 'found' as const, ...place, value }
  if (document === undefined) return found
  const { revision, body, attachments, leaves } = document
  if (documents === 'none') return { ...found, revision }
  return {
    ...found, revision, ...(body && { body }), ...(attachments && { attachments }),
    ...(documents === 'leaves' && leaves && { leaves }),
  }
}

function suitable<Parsed>(parse: () => Parsed): Parsed {
  try {
    return parse()
  } catch (error) {
    throw new ReplicaError('protocol', `the request is not suitable: ${(error as Error).message}`)
  }
}
