/**
 * Validation of writes with `validate_doc_update`, before they are decided (docs/decisions/0012-design-functions.md).
 *
 * The result depends on the edit, the content of its parent, the user, the security object and the functions. The
 * parent's content cannot change, and an edit whose parent was replaced meanwhile gets `conflict` when it is decided.
 * Therefore a validated edit needs no second validation.
 */
import { ApiError, designPrefix, mapBounded } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type {
  DocumentWrite, OperationContext, ReplicatedWrite, WriteOptions, WriteOutcome, WriteUser,
} from '../contracts/coordinator.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readDocument } from '../documents/document-read.ts'
import type { DocumentRead } from '../documents/document-read.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { ancestorsOf, parentsOf } from './old-documents.ts'
import type { OldDocument } from './old-documents.ts'
import { argumentList, contextText, editedDocument, replicatedDocument } from './validation-arguments.ts'
import { hasRules, validatorsOf } from './validation-functions.ts'
import { runValidators } from './validation-run.ts'

/** The outcomes of the writes that did not pass, by their positions. */
export type Refusals = ReadonlyMap<number, WriteOutcome>

/** Writes, and bytes of their bodies, that are validated together in one call of each function. */
const batchWritesMax = 100
const batchBytesMax = 1024 * 1024
/** Batches of one request that are validated at the same time. */
const batchesTogether = 2

/**
 * Returns true when the writes need no validation, as far as this is known without a wait: the node itself writes, all
 * documents are design documents, or the database has neither validation functions nor rules of its own.
 */
export function passesUnvalidated(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly { readonly id: string }[], { user }: WriteOptions,
): boolean {
  if (user === undefined) return true
  const designs = scope.designs.current(db)
  if (designs !== undefined && designs.validating.length === 0 && !hasRules(db)) return true
  return writes.every(isDesign)
}

/**
 * Validates edits. `conflict` takes precedence: a refused edit that would conflict gets that outcome.
 *
 * @throws ApiError `service_unavailable` when the functions are not known or cannot be called
 */
export function validateEdits(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly DocumentWrite[], user: WriteUser,
  context: OperationContext,
): Promise<Refusals> {
  const call = readCall(scope, context)
  return validateAll(scope, db, writes, user, {
    readOld: batch => parentsOf(scope, db, batch, call),
    newDocument: editedDocument,
    refused: async (write, outcome) => await wouldConflict(scope, db, write, call) ? conflict : outcome,
  })
}

/**
 * Validates revisions that come with their history. They never conflict. A refused one that is a leaf already is a
 * success all the same: replicators repeat writes whose answers were lost, and nothing is written again.
 *
 * @throws ApiError as `validateEdits`
 */
export function validateRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly ReplicatedWrite[], user: WriteUser,
  context: OperationContext,
): Promise<Refusals> {
  const call = readCall(scope, context)
  return validateAll(scope, db, writes, user, {
    readOld: batch => ancestorsOf(scope, db, batch, call),
    newDocument: replicatedDocument,
    refused: async (write, outcome) => await storedOutcome(scope, db, write, call) ?? outcome,
  })
}

/** Writes those of the documents that were not refused, and returns the outcomes of all in order. */
export async function writePassed<Write>(
  writes: readonly Write[], refusals: Refusals,
  write: (passed: readonly Write[]) => Promise<readonly WriteOutcome[]>,
): Promise<readonly WriteOutcome[]> {
  if (refusals.size === 0) return write(writes)
  const passed = writes.filter((_, index) => !refusals.has(index))
  const written = (passed.length === 0 ? [] : await write(passed)).values()
  return writes.map((_, index) => refusals.get(index) ?? written.next().value!)
}

const conflict: WriteOutcome = Object.freeze({ kind: 'conflict' })

/** What differs between edits and revisions that come with their history. */
interface WriteKind<Write> {
  readonly readOld: (batch: readonly Write[]) => Promise<readonly OldDocument[]>
  readonly newDocument: (write: Write) => Buffer
  /** Returns the outcome of a write that the functions have refused. */
  readonly refused: (write: Write, outcome: WriteOutcome) => Promise<WriteOutcome>
}

async function validateAll<Write extends { readonly id: string; readonly body: Uint8Array }>(
  scope: CoordinatorScope, db: DatabaseRecord, writes: readonly Write[], user: WriteUser, kind: WriteKind<Write>,
): Promise<Refusals> {
  const refusals = new Map<number, WriteOutcome>()
  const batches = batchesOf(writes)
  if (batches.length === 0) return refusals
  const { validating } = scope.designs.current(db) ?? await scope.designs.open(db)
  const validators = validatorsOf(db, validating)
  if (validators.length === 0) return refusals
  const contextJson = contextText(db, user)
  await mapBounded(batches, batchesTogether, async batch => {
    for (let rest = batch; rest.length > 0;) {
      const old = await kind.readOld(rest.map(index => writes[index]!))
      const called: { readonly index: number; readonly argument: Buffer }[] = []
      for (const [i, index] of rest.entries()) {
        const each = old[i]!
        if (each.kind === 'refused') refusals.set(index, each.outcome)
        if (each.kind !== 'document') continue
        called.push({ index, argument: argumentList(kind.newDocument(writes[index]!), each.text, contextJson) })
      }
      const outcomes = await runValidators(scope.runtime, validators, called.map(({ argument }) => argument))
      await Promise.all(outcomes.map(async (outcome, i) => {
        const { index } = called[i]!
        if (outcome !== undefined) refusals.set(index, await kind.refused(writes[index]!, outcome))
      }))
      rest = rest.filter((_, i) => old[i]!.kind === 'later')
    }
  })
  return refusals
}

/** Returns the positions of the documents of each batch. Design documents are in none. */
function batchesOf(
  writes: readonly { readonly id: string; readonly body: Uint8Array }[],
): readonly (readonly number[])[] {
  const batches: number[][] = []
  let last: number[] = []
  let bytes = batchBytesMax
  for (const [index, write] of writes.entries()) {
    if (isDesign(write)) continue
    if (last.length === batchWritesMax || bytes >= batchBytesMax) {
      batches.push(last = [])
      bytes = 0
    }
    last.push(index)
    bytes += write.body.length
  }
  return batches
}

/** Returns true when the edit would get `conflict` when it is decided. */
async function wouldConflict(
  scope: CoordinatorScope, db: DatabaseRecord, { id, parent }: DocumentWrite, call: CallContext,
): Promise<boolean> {
  const read = await readLeaves(scope, db, id, call)
  // The refusal is the answer when it cannot be seen whether the edit would conflict, too.
  if (read === undefined) return false
  const leaves = read?.leaves ?? []
  if (parent === null) return leaves[0]?.deleted === false
  return !leaves.some(({ revision, deleted }) => revision === parent && !deleted)
}

/** Returns the outcome of a revision that is a leaf already; undefined when it is none, or when this cannot be seen. */
async function storedOutcome(
  scope: CoordinatorScope, db: DatabaseRecord, { id, path }: ReplicatedWrite, call: CallContext,
): Promise<WriteOutcome | undefined> {
  const revision = `${path.start}-${path.ids[0]}`
  const read = await readLeaves(scope, db, id, call)
  if (!read?.leaves.some(leaf => leaf.revision === revision)) return undefined
  // The read has a tree only when the replicas differ.
  return { kind: 'written', revision, accepted: read.tree !== undefined }
}

/** Returns undefined when no replica answers. */
async function readLeaves(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, call: CallContext,
): Promise<DocumentRead | null | undefined> {
  try {
    return await readDocument(scope, db, scope.access.placeOf(db, id), id, { body: false, tree: false }, call)
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

function isDesign({ id }: { readonly id: string }): boolean {
  return id.startsWith(designPrefix)
}
