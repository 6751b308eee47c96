/** Adds indexes to design documents and removes them. A write that meets a conflict is repeated on the new revision. */
import { isDeepStrictEqual } from 'node:util'
import { ApiError, type JsonObject } from '@sectional/core'
import type { OpenedDocument } from '@sectional/cluster'
import { checkDesignFunctions } from '../documents/design-functions.ts'
import { checkWrittenDocument, documentWrite, requireWritten } from '../documents/document-writing.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { IndexRequest } from './index-request.ts'
import { jsonMembers, membersText, type JsonMembers } from './json-members.ts'
import {
  languageOf, partitionedOption, queryLanguage, readIndexes, type StoredIndex,
} from './stored-indexes.ts'

/** How often a write is repeated because another request has written the same design document meanwhile. */
const attemptsMax = 10

/** The members of a new revision; `deleted`: the document is deleted; `unchanged`: nothing is written. */
type Edited = JsonMembers | 'deleted' | 'unchanged'

/**
 * Saves an index in its design document.
 *
 * @returns `exists` when the document already defines the same index
 * @throws ApiError `invalid_ddoc_lang`, `invalid_partitioned_option`, and the errors of a write
 */
export async function addIndex(
  asked: IndexRequest, request: RequestContext, services: Services,
): Promise<'created' | 'exists'> {
  const outcome = await editDesign(asked.ddoc, asked.w, request, services, (members, body) => {
    if (members !== noMembers) requireQueryLanguage(asked.ddoc, members)
    requireSamePartitioning(asked, members, request)
    const present = readIndexes(asked.ddoc, body, request.database).find(({ name }) => name === asked.name)
    if (present !== undefined && isSame(present, asked)) return 'unchanged'
    const views = new Map(jsonMembers(members.get('views') ?? '')).set(asked.name, viewText(asked))
    const changed = new Map([['language', JSON.stringify(queryLanguage)], ...members])
    changed.set('views', membersText(views))
    if (asked.partitioned !== undefined) changed.set('options', optionsText(members, asked.partitioned))
    return changed
  })
  return outcome === 'unchanged' ? 'exists' : 'created'
}

/**
 * Removes indexes from a design document. The document is deleted when it then defines nothing more.
 *
 * @param id with `_design/`
 * @param isRemoved which indexes to remove
 * @returns false when the document has none of these indexes
 */
export async function removeIndexes(
  id: string, isRemoved: (index: StoredIndex) => boolean, w: number | undefined, request: RequestContext,
  services: Services,
): Promise<boolean> {
  const outcome = await editDesign(id, w, request, services, (members, body) => {
    const removed = readIndexes(id, body, request.database).filter(isRemoved)
    if (removed.length === 0) return 'unchanged'
    const views = new Map(jsonMembers(members.get('views') ?? ''))
    for (const { name } of removed) views.delete(name)
    const changed = new Map(members).set('views', membersText(views))
    const definesMore = views.size > 0 || [...members.keys()].some(name => !indexMembers.has(name))
    return definesMore ? changed : 'deleted'
  })
  return outcome === 'written'
}

/** Members without a meaning when a design document has no index. */
const indexMembers = new Set(['language', 'views', 'options'])
const nothing = Buffer.from('{}')
/** The members of a document that does not exist. */
const noMembers: JsonMembers = Object.freeze(new Map())

async function editDesign(
  id: string, w: number | undefined, request: RequestContext, services: Services,
  edit: (members: JsonMembers, body: Uint8Array) => Edited,
): Promise<'written' | 'unchanged'> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    request.signal.throwIfAborted()
    const opened = await services.coordinator.openDocument(request.database, id, {}, request)
    const present = opened !== null && !opened.leaves[0]!.deleted ? opened : null
    if (present !== null && present.body === undefined) throw new ApiError('missing')
    const body = present?.body ?? nothing
    const edited = edit(present === null ? noMembers : jsonMembers(body), body)
    if (edited === 'unchanged') return 'unchanged'
    const isDeleted = edited === 'deleted'
    const text = isDeleted ? nothing : Buffer.from(membersText(edited))
    if (await write(id, present, isDeleted, text, w, request, services)) return 'written'
  }
  throw new ApiError('error_saving_ddoc')
}

/** @returns false after a conflict */
async function write(
  id: string, present: OpenedDocument | null, deleted: boolean, body: Buffer, w: number | undefined,
  request: RequestContext, services: Services,
): Promise<boolean> {
  const { coordinator, options } = services
  const parsed = { id, revision: null, deleted, body, path: null, attachments: null }
  checkWrittenDocument(id, parsed, request.database, services)
  await checkDesignFunctions(id, parsed, request, services)
  const attachments = deleted ? undefined : present?.attachments
  const [outcome] = await coordinator.updateDocuments(
    request.database, [documentWrite(id, present?.leaves[0]!.revision ?? null, deleted, body, attachments)],
    { w, partitionBytesMax: options.partitionBytesMax, user: request.user }, request,
  )
  if (outcome!.kind === 'conflict') return false
  requireWritten(outcome!)
  return true
}

function requireQueryLanguage(id: string, members: JsonMembers): void {
  const language = languageOf(members)
  if (language !== queryLanguage) {
    throw new ApiError(
      'invalid_ddoc_lang', `Invalid design document query language: ${id} has ${JSON.stringify(language ?? 'none')}`,
    )
  }
}

/** All indexes of a design document are partitioned, or none. */
function requireSamePartitioning(
  { ddoc, partitioned }: IndexRequest, members: JsonMembers, { database }: RequestContext,
): void {
  if (partitioned === undefined || jsonMembers(members.get('views') ?? '').size === 0) return
  if ((partitionedOption(members) ?? database.partitioned) === partitioned) return
  throw new ApiError(
    'invalid_partitioned_option',
    `Requested partitioned option does not match existing value on design document ${ddoc}`,
  )
}

function optionsText(members: JsonMembers, partitioned: boolean): string {
  return membersText(new Map(jsonMembers(members.get('options') ?? '')).set('partitioned', String(partitioned)))
}

function isSame({ fields, partialFilter = {} }: StoredIndex, asked: IndexRequest): boolean {
  return isDeepStrictEqual([fields, partialFilter], [asked.fields, asked.partialFilter])
}

/** Returns the member of `views` that defines the index, as CouchDB stores it. */
function viewText({ fields, partialFilter, definition }: IndexRequest): string {
  const directions = membersText(fields.map(({ name, direction }) => [name, JSON.stringify(direction)]))
  const map = `{"fields":${directions},"partial_filter_selector":${JSON.stringify(partialFilter)}}`
  const options: JsonObject = { def: definition }
  return `{"map":${map},"reduce":"_count","options":${JSON.stringify(options)}}`
}
