import type {
  CallContext, ChangeReplica, DocumentRow, FindRequest, FindRow, PageLimits, ReadDocuments, ScannedPlace,
} from '@sectional/core'
import { newestPosition, ReplicaError } from '@sectional/core'
import type { Clock, Machine, Turns } from '@sectional/runtime'
import { ReplicaCalls } from '../../calls/replica-calls.ts'
import { DocumentSelector } from './document-selector.ts'
import { FindAnswer } from './find-answer.ts'

export interface FindParts {
  readonly replica: Pick<ChangeReplica, 'waitForChange'>
  /** The documents of the replica. */
  readonly documents: ReadDocuments
  readonly clock: Clock
  readonly turns: Turns
  readonly machine: Pick<Machine, 'testInTime'>
  /** The limits of the pages of the answer; absent: `rowPages`. */
  readonly pages?: PageLimits
}

/** A call on the documents of the replica takes at most this many milliseconds; for scans, each page. */
export const documentCallMs = 30_000

/** The number of documents, or rows, that are read first when the request has a smaller limit of matches. */
export const firstReadMin = 16
/** By how many times more are read when the first ones were not enough. */
export const readGrowth = 8
/** From this number on, documents are read to the end of the source. */
const scannedMax = 1024

const noValue = new Uint8Array(0)

/** Finds documents of a replica without an index. The call's timeout bounds the wait for each page. */
export async function* findInReplica(
  parts: FindParts, request: FindRequest, context: CallContext,
): AsyncGenerator<readonly FindRow[]> {
  const { history } = await newestPosition(parts.replica, context)
  yield* new ReplicaCalls(history, parts.clock, () => {}).pages(context, () => findByDocuments(parts, request, history))
}

/** @param history of the replica */
async function* findByDocuments(
  parts: FindParts, request: FindRequest, history: string,
): AsyncGenerator<readonly FindRow[]> {
  const { documents, clock, turns } = parts
  const selector = new DocumentSelector(request, parts)
  const answer = new FindAnswer(request, clock, selector.groups, parts.pages)
  if (answer.isComplete) return
  const call = { timeoutMs: documentCallMs, history }
  for await (const page of documentPages(documents, request, call)) {
    for (const document of page) {
      const place = documentPlace(document)
      const match = selector.match(place, noValue, document)
      if (match === undefined) answer.examined(place, 1)
      else answer.found(match, 1)
      if (answer.isComplete) return yield answer.takePage()
      if (answer.isPageDue) yield answer.takePage()
      if (turns.due()) await turns.next()
    }
  }
  const rest = answer.takePage()
  if (rest.length > 0) yield rest
}

/** Reads more documents each time, because it is not known how many of them match. */
async function* documentPages(
  replica: ReadDocuments, { source, descending, after, limit = Infinity, documents }: FindRequest, call: CallContext,
): AsyncGenerator<readonly DocumentRow[]> {
  if (source.kind !== 'documents') throw new ReplicaError('protocol', 'the source is not all documents')
  const { end } = source
  let start = after === undefined ? source.start : { id: after.id, inclusive: false }
  for (let count = Math.max(firstReadMin, limit); ; count *= readGrowth) {
    const scan = {
      descending, body: true, leaves: documents === 'leaves', ...(start && { start }), ...(end && { end }),
      ...(count < scannedMax && { limit: count }),
    }
    let read = 0
    for await (const page of replica.scanDocuments(scan, call)) {
      read += page.length
      start = { id: page.at(-1)!.id, inclusive: false }
      yield page
    }
    if (count >= scannedMax || read < count) return
  }
}

function documentPlace({ id }: DocumentRow): ScannedPlace {
  return { range: 0, key: '', id, number: 0 }
}
