/** One query of a view: from its parameters to the query of the coordinator, and from the answer to JSON. */
import { viewRanges, type ViewAnswer, type ViewGroup, type ViewQuery } from '@sectional/cluster'
import {
  decodeReduced, decodeViewGroup, decodeViewRow, SortKeyEncoder, type IndexDefinition, type IndexRow, type RowRange,
} from '@sectional/core'
import { documentsPerLookup } from '../lists/included-document.ts'
import { ListWriter, type ListHead } from '../lists/list-writer.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import { linkedDocuments } from './linked-documents.ts'
import type { Services } from '../services/services.ts'
import type { ViewParameters } from './view-parameters.ts'

const encoders = { root: new SortKeyEncoder('root'), raw: new SortKeyEncoder('raw') }

/** A query whose answer has begun. */
export interface OpenedView {
  readonly answer: Pick<ViewAnswer<unknown>, 'fingerprint' | 'updateSequence' | 'close'>
  /** Writes the answer without a line break at its end. May be called once. */
  write(writer: JsonWriter): Promise<void>
}

/** A query with what was read from its parameters. */
export interface PreparedQuery {
  readonly parameters: ViewParameters
  readonly query: ViewQuery
}

/**
 * Translates the parameters of a query into ranges of the index.
 *
 * @throws ApiError `query_parse_error` for a range that cannot contain a row; `bad_request` for a key that is too long
 */
export async function prepareQuery(
  definition: IndexDefinition, parameters: ViewParameters, { options, runtime: { turns } }: Services,
): Promise<PreparedQuery> {
  const { keys, descending, skip, limit, update, partition } = parameters
  const encoder = encoders[definition.options['collation'] === 'raw' ? 'raw' : 'root']
  let ranges: readonly RowRange[]
  if (keys === undefined) ranges = viewRanges(parameters, encoder)
  else {
    // Encode them in slices: there may be a hundred thousand keys.
    const inOrder = descending ? keys.toReversed() : keys
    ranges = (await turns.map(inOrder, key => viewRanges({ ...parameters, keys: undefined, key }, encoder))).flat()
  }
  return {
    parameters,
    query: {
      definition, ranges, descending, skip, limit, update, timeoutMs: options.queryTimeoutMs,
      ...(partition !== undefined && { partition }),
    },
  }
}

/**
 * Begins a query. The caller must close its answer.
 *
 * @throws ApiError `timeout` when the indexes were not built in time, and as every operation of the coordinator
 */
export async function openView(
  { parameters, query }: PreparedQuery, request: RequestContext, services: Services,
): Promise<OpenedView> {
  const { coordinator } = services
  const { groupLevel } = parameters
  if (groupLevel === null) {
    const answer = await coordinator.scanView(request.database, query, request)
    return { answer, write: writer => writeRows(writer, answer, parameters, request, services) }
  }
  const answer = await coordinator.reduceView(request.database, { ...query, groupLevel }, request)
  return { answer, write: writer => writeGroups(writer, answer, parameters) }
}

function sequenceMember(
  { updateSequence }: ViewAnswer<unknown>, parameters: ViewParameters,
): Pick<ListHead, 'updateSequence'> {
  return parameters.updateSequence ? { updateSequence: updateSequence() } : {}
}

async function writeRows(
  writer: JsonWriter, answer: ViewAnswer<IndexRow>, parameters: ViewParameters,
  request: RequestContext, services: Services,
): Promise<void> {
  const { total, offset } = answer
  const rows = new ListWriter(writer, {
    // Rows of which the client says that their order does not matter have no positions.
    ...(parameters.sorted && { total, offset }), ...sequenceMember(answer, parameters),
  })
  for await (const page of answer.rows) {
    for (let begin = 0; begin < page.length; begin += documentsPerLookup) {
      const window = page.slice(begin, begin + documentsPerLookup)
        .map(({ id, value }) => ({ id, ...decodeViewRow(value) }))
      const documents = parameters.includeDocs
        ? await linkedDocuments(window, parameters, request, services)
        : undefined
      for (const [index, { id, key, value }] of window.entries()) {
        const full = rows.viewRow(id, key, value, documents?.[index])
        if (full !== undefined) await full
      }
    }
  }
  rows.end()
}

async function writeGroups(
  writer: JsonWriter, answer: ViewAnswer<ViewGroup>, parameters: ViewParameters,
): Promise<void> {
  const rows = new ListWriter(writer, sequenceMember(answer, parameters))
  for await (const page of answer.rows) {
    for (const group of page) {
      const { key, state } = decodeViewGroup(group.value)
      const reduced = decodeReduced(state)
      const full = reduced.failure === undefined
        ? rows.groupRow(key ?? 'null', reduced.json)
        : rows.failedGroup(key ?? 'null', reduced.failure)
      if (full !== undefined) await full
    }
  }
  rows.end()
}
