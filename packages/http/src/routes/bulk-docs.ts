/** `_bulk_docs`: many writes in one request, each with its own outcome (docs/reference/bulk.md#post-db_bulk_docs). */
import {
  ApiError, designPrefix, formatRevision, localPrefix, mapBounded, readBulkDocuments, type AttachmentRecord,
  type BulkDocuments, type ParsedDocument,
} from '@sectional/core'
import type { DatabaseRecord, DocumentWrite, ReplicatedWrite, WriteOutcome } from '@sectional/cluster'
import { attachmentEntries } from '../attachments/attachment-entries.ts'
import { resolveAttachments } from '../attachments/attachment-resolution.ts'
import { isDatabaseAdmin } from '../authentication/authorization.ts'
import { requireDesignWriter } from '../authentication/design-rights.ts'
import { readJsonBytes, requireJsonType, runWhileWanted } from '../messages/body.ts'
import { DesignCompiler } from '../documents/design-functions.ts'
import {
  checkDocumentContent, checkDocumentSize, documentWrite, postedId, requireRevision,
} from '../documents/document-writing.ts'
import { localRevision, updateLocal } from '../documents/local-writing.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'

const localConcurrency = 8
/** Documents whose attachments are stored concurrently. */
const attachmentConcurrency = 8

interface Item {
  readonly id: string
  readonly document: ParsedDocument
  readonly attachments?: readonly AttachmentRecord[]
  /** Why this document is not written; the others of the request still are. */
  readonly refusal?: ApiError
}

type Row =
  | { readonly ok: true; readonly id: string; readonly rev: string; readonly accepted?: true }
  | { readonly id: string; readonly rev?: string; readonly error: string; readonly reason: unknown }

export async function postBulkDocuments(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const { database } = request
  const bulk = await readBulk(request, services)
  const parsed = await services.runtime.turns.map(
    bulk.documents, document => readItem(postedId(document, database, services), document, database, services),
  )
  if (bulk.members['all_or_nothing'] === true) return refuseAllOrNothing(parsed, request, services)
  if (!bulk.newEdits) requireRevisions(parsed)
  const compiled = await withoutBrokenDesigns(parsed, request, services)
  const items = await withAttachments(compiled, bulk.newEdits, request, services)
  const w = writeQuorum(bulk.members['w'], request)
  const outcomes = bulk.newEdits
    ? await updateAll(items, w, request, services)
    : await storeAll(items, w, request, services)
  const rows = outcomes.map((outcome, index) => row(items[index]!, outcome, bulk.newEdits))
  sendJson(request, services, statusOf(outcomes), bulk.newEdits ? rows : rows.filter(item => !('ok' in item)))
}

/** Estimated bytes of memory that a parsed document and its outcome take in addition to the bytes of its body. */
const documentBytes = 2048

async function readBulk(request: RequestContext, services: Services): Promise<BulkDocuments> {
  const bytes = await readJsonBytes(request, services)
  const { admission, options } = services
  const documentsMax = options.bulkDocumentsMax
  const reading = readBulkDocuments(bytes, { documentsMax, setting: httpDeclarations.bulkDocumentsMax.name })
  admission.reserveParsed(request, bytes.length)
  return runWhileWanted((function* () {
    for (let step = reading.next(); ; step = reading.next()) {
      if (step.done === true) return step.value
      admission.reserveParsed(request, documentBytes)
      yield
    }
  })(), request, services)
}

/** Checks one document. @throws ApiError when it is too large, which fails the whole request like a parse error */
function readItem(id: string, document: ParsedDocument, database: DatabaseRecord, services: Services): Item {
  const tooLarge = checkDocumentSize(id, document, services)
  if (tooLarge !== null) throw tooLarge
  if (id.startsWith(localPrefix)) return { id, document }
  try {
    checkDocumentContent(id, document, database, services)
    return { id, document }
  } catch (error) {
    if (error instanceof ApiError && id.startsWith(designPrefix)) return { id, document, refusal: error }
    throw error
  }
}

/** Refuses the design documents whose functions do not compile. Others than administrators may not write any. */
async function withoutBrokenDesigns(
  items: readonly Item[], request: RequestContext, services: Services,
): Promise<readonly Item[]> {
  if (!items.some(({ id }) => id.startsWith(designPrefix)) || !isDatabaseAdmin(request.user, request.database)) {
    return items
  }
  const compiler = new DesignCompiler(request, services)
  const checked: Item[] = []
  for (const item of items) {
    const refusal = item.refusal ?? await apiErrorOf(compiler.check(item.id, item.document))
    checked.push(refusal === undefined ? item : { ...item, refusal })
  }
  return checked
}

function requireRevisions(items: readonly Item[]): void {
  for (const { document } of items) requireRevision(document.revision)
}

/** Stores the attachments of all documents before any document is written: an error in one fails the whole request. */
async function withAttachments(
  items: readonly Item[], newEdits: boolean, request: RequestContext, services: Services,
): Promise<readonly Item[]> {
  if (items.every(({ document }) => document.attachments === null)) return items
  for (const { id, document } of items) {
    if (!id.startsWith(localPrefix)) await runWhileWanted(attachmentEntries(document), request, services)
  }
  return mapBounded(items, attachmentConcurrency, async item => {
    const { id, document } = item
    if (id.startsWith(localPrefix) || item.refusal !== undefined) return item
    try {
      const attachments = await resolveAttachments(
        id, document, { newEdits, parent: document.revision }, request, services,
      )
      return attachments === undefined ? item : { ...item, attachments }
    } catch (error) {
      // Stubs of a revision that is no longer a leaf are a conflict of this document only.
      if (error instanceof ApiError && error.error === 'conflict') return { ...item, refusal: error }
      throw error
    }
  })
}

/** Returns `w`; the body takes precedence over the query. */
function writeQuorum(inBody: unknown, request: RequestContext): number | undefined {
  return typeof inBody === 'number' && Number.isInteger(inBody) ? inBody : request.query.quorum('w')
}

async function updateAll(
  items: readonly Item[], w: number | undefined, request: RequestContext, services: Services,
): Promise<readonly WriteOutcome[]> {
  return split(items, true, request, services, async rest => {
    const writes: DocumentWrite[] = await services.runtime.turns.map(rest, ({ id, document, attachments }) => {
      request.signal.throwIfAborted()
      return documentWrite(id, document.revision, document.deleted, document.body, attachments)
    })
    const { partitionBytesMax } = services.options
    return services.coordinator.updateDocuments(
      request.database, writes, { w, partitionBytesMax, user: request.user }, request,
    )
  })
}

async function storeAll(
  items: readonly Item[], w: number | undefined, request: RequestContext, services: Services,
): Promise<readonly WriteOutcome[]> {
  return split(items, false, request, services, async rest => {
    const writes: ReplicatedWrite[] = rest.map(({ id, document, attachments }) => (
      { id, path: document.path!, deleted: document.deleted, body: document.body, ...(attachments && { attachments }) }
    ))
    return services.coordinator.storeRevisions(request.database, writes, { w, user: request.user }, request)
  })
}

/** Separates local documents and refused ones, writes all others together, and returns the outcomes in order. */
async function split(
  items: readonly Item[], newEdits: boolean, request: RequestContext, services: Services,
  write: (rest: readonly Item[]) => Promise<readonly WriteOutcome[]>,
): Promise<readonly WriteOutcome[]> {
  const { database, user } = request
  const outcomes: WriteOutcome[] = new Array<WriteOutcome>(items.length)
  const rest: number[] = []
  const locals: number[] = []
  const designs: number[] = []
  const mayDesign = isDatabaseAdmin(user, database)
  for (const [index, { id, refusal }] of items.entries()) {
    if (id.startsWith(localPrefix)) locals.push(index)
    else if (!mayDesign && id.startsWith(designPrefix)) designs.push(index)
    else if (refusal !== undefined) outcomes[index] = refused(refusal)
    else rest.push(index)
  }
  const writing = rest.length === 0 ? Promise.resolve([]) : write(rest.map(index => items[index]!))
  const [written] = await Promise.all([writing, mapBounded(locals, localConcurrency, async index => {
    outcomes[index] = await writeLocal(items[index]!, request, services)
  }), mapBounded(designs, localConcurrency, async index => {
    const { id, document } = items[index]!
    const error = newEdits ? await apiErrorOf(requireDesignWriter(id, document.revision, request, services)) : undefined
    outcomes[index] = error === undefined ? refusedDesign(user.name) : refused(error)
  })])
  for (const [position, index] of rest.entries()) outcomes[index] = written[position]!
  return outcomes
}

async function apiErrorOf(work: Promise<void>): Promise<ApiError | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

function refusedDesign(name: string | null): WriteOutcome {
  return name === null
    ? { kind: 'error', error: 'unauthorized', reason: 'You are not a db or server admin.', status: 401 }
    : { kind: 'error', error: 'forbidden', reason: 'You are not a db or server admin.', status: 403 }
}

function refused({ error, reason, status }: ApiError): WriteOutcome {
  return { kind: 'error', error, reason, status }
}

async function writeLocal({ id, document }: Item, request: RequestContext, services: Services): Promise<WriteOutcome> {
  try {
    const { revision, accepted } = await updateLocal(
      id.slice(localPrefix.length), document.revision, document, request, services, request,
    )
    return { kind: 'written', revision: localRevision(revision), accepted }
  } catch (error) {
    if (error instanceof ApiError) return refused(error)
    throw error
  }
}

function row({ id, document }: Item, outcome: WriteOutcome, newEdits: boolean): Row {
  switch (outcome.kind) {
    case 'written': {
      const { revision: rev, accepted } = outcome
      return accepted ? { ok: true, id, rev, accepted: true } : { ok: true, id, rev }
    }
    case 'conflict': return failure(id, document, newEdits, 'conflict', 'Document update conflict.')
    case 'error': {
      const { error, reason, thrownReason = reason } = outcome
      return failure(id, document, newEdits, error, thrownReason)
    }
  }
}

function failure(id: string, { path }: ParsedDocument, newEdits: boolean, error: string, reason: unknown): Row {
  if (newEdits || path === null) return { id, error, reason }
  return { id, rev: formatRevision({ generation: path.start, hash: path.ids[0]! }), error, reason }
}

/** Errors of validation functions after which the document may be sent again. */
const passingErrors: ReadonlySet<string> = new Set(['timeout', 'not_implemented'])

/** A validation function that threw has refused its document for good. All other rows of 5xx may be sent again. */
function statusOf(outcomes: readonly WriteOutcome[]): number {
  const isOpen = (outcome: WriteOutcome): boolean => outcome.kind === 'error' && outcome.status >= 500
    && !(outcome.byFunction && !passingErrors.has(outcome.error))
  if (outcomes.some(isOpen)) return 500
  return outcomes.some(outcome => outcome.kind === 'written' && outcome.accepted) ? 202 : 201
}

function refuseAllOrNothing(items: readonly Item[], request: RequestContext, services: Services): void {
  const rows = items.map(({ id, document }) => (
    { id, rev: document.revision ?? '0', error: 'not_implemented', reason: 'all_or_nothing is not supported' }
  ))
  sendJson(request, services, 417, rows)
}
