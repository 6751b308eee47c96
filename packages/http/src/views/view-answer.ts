/** One query of a view: from its parameters to the query of the coordinator, and from the answer to JSON. */
import { viewRanges, type ViewAnswer, type ViewGroup, type ViewQuery } from '@sectional/cluster'
import {
  builtInReduce, decodeReduced, decodeViewGroup, decodeViewRow, indexId, SortKeyEncoder, type IndexDefinition,
  type IndexRow, type ReducedJson, type RowRange, type SplicedDocument,
} from '@sectional/core'
import { documentsPerLookup } from '../lists/included-document.ts'
import { ListWriter, type DocumentWriter, type ListHead } from '../lists/list-writer.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import { linkedDocuments } from './linked-documents.ts'
import { definitionAfter, type ViewName } from './view-definitions.ts'
import type { Services } from '../services/services.ts'
import type { ViewParameters } from './view-parameters.ts'

/** How often a query begins again with the definition that the view has then. */
const changedViewsMax = 3

const encoders = { root: new SortKeyEncoder('root'), raw: new SortKeyEncoder('raw') }

/** A query whose answer has begun. Its rows may be read once, by `write` or by one of the other members. */
export type OpenedView = OpenedRows | OpenedGroups

interface Opened {
  readonly parameters: ViewParameters
  /** Writes the answer without a line break at its end. */
  write(writer: JsonWriter): Promise<void>
}

export interface OpenedRows extends Opened {
  readonly kind: 'rows'
  readonly answer: ViewAnswer<IndexRow>
  windows(): AsyncIterable<RowWindow>
}

export interface OpenedGroups extends Opened {
  readonly kind: 'groups'
  readonly answer: ViewAnswer<ViewGroup>
  groups(): AsyncIterable<readonly Group[]>
}

/** A reduced group. @param key JSON text */
export interface Group { readonly key: string; readonly reduced: ReducedJson }

/** Successive rows of a view, and their documents if these are included. */
export interface RowWindow {
  /** Keys and values are JSON texts. */
  readonly rows: readonly { readonly id: string; readonly key: string; readonly value: string }[]
  /** As for `ListWriter.viewRow`, in the order of the rows. */
  readonly documents: readonly (SplicedDocument | DocumentWriter | null)[] | undefined
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
  const { keys, skip, limit, update, partition } = parameters
  // As in CouchDB, groups have the order of the keys in either direction.
  const descending = parameters.descending && (keys === undefined || parameters.groupLevel === null)
  const encoder = encoders[definition.options['collation'] === 'raw' ? 'raw' : 'root']
  let ranges: readonly RowRange[]
  if (keys === undefined) ranges = viewRanges(parameters, encoder)
  else {
    // Encode them in slices: there may be a hundred thousand keys.
    const inOrder = descending ? keys.toReversed() : keys
    // The ids that bound the rows of each key are in the direction of the request all the same.
    const common = { ...parameters, keys: undefined }
    ranges = (await turns.map(inOrder, key => viewRanges({ ...common, key }, encoder))).flat()
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
 * Begins a query. When it fails and the view was changed meanwhile, it begins again: the cleanup of views has removed
 * the indexes that it waited for. All attempts together may take the time of one. The caller must close its answer.
 *
 * @param prepare prepares the query for another definition of the view
 * @throws ApiError `timeout` when the indexes were not built in time, and as every operation of the coordinator;
 * `missing` or `deleted` when the view was deleted meanwhile; as `prepare`
 */
export async function openView(
  view: ViewName, prepared: PreparedQuery, prepare: (definition: IndexDefinition) => Promise<PreparedQuery>,
  request: RequestContext, services: Services,
): Promise<OpenedView> {
  const { clock } = services.runtime
  const deadline = clock.monotonic() + prepared.query.timeoutMs
  let current = prepared
  for (let changes = 0; ; changes++) {
    try {
      return await beginQuery(current, request, services)
    } catch (error) {
      const definition = await definitionAfter(error, view, request, services)
      const timeoutMs = deadline - clock.monotonic()
      const isSame = indexId(definition) === indexId(current.query.definition)
      if (isSame || timeoutMs <= 0 || changes === changedViewsMax) throw error
      const { parameters, query } = await prepare(definition)
      current = { parameters, query: { ...query, timeoutMs } }
    }
  }
}

async function beginQuery(
  { parameters, query }: PreparedQuery, request: RequestContext, services: Services,
): Promise<OpenedView> {
  const { coordinator } = services
  const { groupLevel } = parameters
  if (groupLevel === null) {
    const answer = await coordinator.scanView(request.database, query, request)
    const windows = () => rowWindows(answer, parameters, request, services)
    const head = viewHead(answer, parameters)
    const write = (writer: JsonWriter): Promise<void> => parameters.includeDocs
      ? writeRowsWithDocuments(writer, windows(), head) : writeRows(writer, answer, head)
    return { kind: 'rows', parameters, answer, windows, write }
  }
  const answer = await coordinator.reduceView(request.database, { ...query, groupLevel }, request)
  const groups = () => decodedGroups(answer)
  const write = (writer: JsonWriter): Promise<void> => {
    // Such a function may fail this time, and not the next time, for the same rows. So the answer to a failure must not
    // have the ETag of the right answer.
    if (builtInReduce(query.definition.reduce!) === undefined) writer.holdTag()
    return writeGroups(writer, groups(), viewHead(answer, parameters))
  }
  return { kind: 'groups', parameters, answer, groups, write }
}

/** Returns the members before the rows. Reduced rows have no positions, nor have rows whose order does not matter. */
export function viewHead(
  { total, offset, updateSequence }: ViewAnswer<unknown>, parameters: ViewParameters,
): ListHead {
  return {
    ...(parameters.groupLevel === null && parameters.sorted && { total, offset }),
    ...(parameters.updateSequence && { updateSequence: updateSequence() }),
  }
}

async function* rowWindows(
  answer: ViewAnswer<IndexRow>, parameters: ViewParameters, request: RequestContext, services: Services,
): AsyncGenerator<RowWindow, void, undefined> {
  for await (const page of answer.rows) {
    for (let begin = 0; begin < page.length; begin += documentsPerLookup) {
      const rows = page.slice(begin, begin + documentsPerLookup)
        .map(({ id, value }) => ({ id, ...decodeViewRow(value) }))
      const documents = parameters.includeDocs
        ? await linkedDocuments(rows, parameters, request, services)
        : undefined
      yield { rows, documents }
    }
  }
}

async function writeRows(writer: JsonWriter, { rows }: ViewAnswer<IndexRow>, head: ListHead): Promise<void> {
  const list = new ListWriter(writer, head)
  for await (const page of rows) {
    for (const { id, value } of page) {
      const full = list.storedRow(id, value)
      if (full !== undefined) await full
    }
  }
  list.end()
}

async function writeRowsWithDocuments(
  writer: JsonWriter, windows: AsyncIterable<RowWindow>, head: ListHead,
): Promise<void> {
  const list = new ListWriter(writer, head)
  for await (const { rows, documents } of windows) {
    for (const [index, { id, key, value }] of rows.entries()) {
      const full = list.viewRow(id, key, value, documents?.[index])
      if (full !== undefined) await full
    }
  }
  list.end()
}

async function* decodedGroups({ rows }: ViewAnswer<ViewGroup>): AsyncGenerator<readonly Group[], void, undefined> {
  for await (const page of rows) {
    yield page.map(({ value }) => {
      const { key, state } = decodeViewGroup(value)
      return { key: key ?? 'null', reduced: decodeReduced(state) }
    })
  }
}

async function writeGroups(
  writer: JsonWriter, groups: AsyncIterable<readonly Group[]>, head: ListHead,
): Promise<void> {
  const rows = new ListWriter(writer, head)
  for await (const page of groups) {
    for (const { key, reduced } of page) {
      if (reduced.failure !== undefined) writer.withdrawTag()
      const full = reduced.failure === undefined
        ? rows.groupRow(key, reduced.json) : rows.failedGroup(key, reduced.failure)
      if (full !== undefined) await full
    }
  }
  rows.end()
}

/** Included documents may change while no row of the view does, so the database's state belongs to the ETag. */
export async function documentsFingerprint(request: RequestContext, services: Services): Promise<string> {
  return (await services.coordinator.databaseState(request.database, request)).fingerprint
}
