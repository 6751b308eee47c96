/** Answers `_find`. */
import { parseFieldPaths, type FoundDocument } from '@sectional/core'
import type { FindAnswer, FindQuery } from '@sectional/cluster'
import { JsonWriter } from '../messages/json-writer.ts'
import { jsonHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { suggestionHeaders } from './advice.ts'
import { answerMembers } from './answer-members.ts'
import type { FindPlan } from './find-plan.ts'
import { bookmarkAfter, findQuery, isCovered, scanTime } from './find-query.ts'
import type { FindRequest } from './find-request.ts'
import type { ScanTime } from './scan-time.ts'
import { writeFound, type ShownFields } from './found-documents.ts'

/** Returns the answer to a query that no document can match. */
function emptyAnswer(): FindAnswer {
  return {
    matches: (async function* () {})(), lastPosition: () => undefined, close: async () => {},
    statistics: () => ({ keysExamined: 0, documentsExamined: 0, quorumDocumentsExamined: 0, matchesFound: 0 }),
  }
}

/** Executes a query and writes the documents as they come. */
export async function answerFind(
  find: FindRequest, plan: FindPlan, request: RequestContext, services: Services,
): Promise<void> {
  const query = findQuery(find, plan, services)
  // Each row of exact ranges is a match, so such a query does not look for matches.
  const time = query === null || query.isExact ? undefined : scanTime(query, request, services)
  try {
    await writeAnswer(find, plan, query, time, request, services)
  } catch (error) {
    throw time?.errorOf(error) ?? error
  } finally {
    time?.stop()
  }
}

async function writeAnswer(
  find: FindRequest, plan: FindPlan, query: FindQuery | null, time: ScanTime | undefined, request: RequestContext,
  services: Services,
): Promise<void> {
  const { clock } = services.runtime
  const startedAt = clock.monotonic()
  const answer = query === null || find.limit === 0
    ? emptyAnswer()
    : await services.coordinator.find(request.database, query, time?.context ?? request)
  try {
    const headers = { ...jsonHeaders(request, services), ...suggestionHeaders(plan.suggestion) }
    const writer = new JsonWriter(request, services, 200, headers)
    writer.text('{"docs":[\r\n')
    const count = await writeDocuments(writer, answer.matches, shownFields(find, plan), time, services)
    const outcome = { statistics: answer.statistics(), results: count, timeMs: clock.monotonic() - startedAt }
    const tail = {
      bookmark: bookmarkAfter(answer.lastPosition(), find, plan),
      ...answerMembers(find, plan, outcome, request, services),
    }
    writer.text(`\r\n],${tailText(tail)}}\n`)
    await writer.end()
  } finally {
    await answer.close()
  }
}

/** @returns the number of documents */
async function writeDocuments(
  writer: JsonWriter, matches: AsyncIterable<readonly FoundDocument[]>, fields: ShownFields, time: ScanTime | undefined,
  services: Services,
): Promise<number> {
  let count = 0
  for await (const page of matches) {
    time?.stop()
    for (const found of page) {
      if (count++ > 0) writer.text(',\r\n')
      const written = writeFound(writer, found, fields, services)
      if (written !== undefined) await written
      const full = writer.flushFull()
      if (full !== undefined) await full
    }
    time?.begin()
  }
  return count
}

function shownFields(find: FindRequest, plan: FindPlan): ShownFields {
  return {
    fields: find.paths.length === 0 ? null : find.paths,
    conflicts: find.conflicts,
    columns: isCovered(find, plan) ? parseFieldPaths(plan.index!.fields.map(({ name }) => name)) : null,
  }
}

/** Returns the last members of the answer, each on a line of its own, as CouchDB writes them. */
function tailText(members: object): string {
  return Object.entries(members).map(([name, value]) => `\r\n${JSON.stringify(name)}: ${JSON.stringify(value)}`).join()
}
