import { mapBounded, type FoundDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { FindQuery } from '../contracts/find-query.ts'
import { shardFailure } from '../replicas/replica-failures.ts'
import type { FindScope } from './find-scope.ts'
import type { FindTally } from './find-tally.ts'
import { SelectorTest } from './selector-test.ts'

/** Number of documents that are read together. */
const readTogether = 32

/**
 * Reads the documents of candidates from `r` replicas each, and tests the selector on what these know together.
 *
 * @param candidates rows whose documents were not read, in order
 * @returns the matches in the same order
 * @throws ApiError when a document can be read from no replica, or the client has disconnected
 */
export async function* quorumMatches(
  scope: FindScope, db: DatabaseRecord, candidates: AsyncIterable<readonly FoundDocument[]>,
  { selector, r, documents }: Pick<FindQuery, 'selector' | 'r' | 'documents'>, tally: FindTally,
  context: OperationContext,
): AsyncGenerator<readonly FoundDocument[]> {
  const { turns } = scope.runtime
  const test = new SelectorTest(selector, scope.runtime)
  for await (const page of candidates) {
    for (let at = 0; at < page.length; at += readTogether) {
      const opened = await mapBounded(page.slice(at, at + readTogether), scope.options.requestCallsMax, async row => {
        tally.addQuorumDocument()
        const document = await scope.openDocument(db, row.id, { ...(r !== undefined && { r }) }, context)
        const winner = document?.leaves[0]
        if (document?.body === undefined || winner === undefined || winner.deleted) return []
        const { body, attachments, leaves } = document
        return [{
          ...row, revision: winner.revision, body, ...(attachments && { attachments }),
          ...(documents === 'leaves' && { leaves }),
        }]
      })
      const found: FoundDocument[] = []
      for (const document of opened.flat()) {
        if (test.matches(document)) found.push(document)
        await turns.pause()
        if (context.signal.aborted) throw shardFailure([])
      }
      tally.addQuorumMatches(found.length)
      if (found.length > 0) yield found
      await turns.pause()
    }
  }
}
