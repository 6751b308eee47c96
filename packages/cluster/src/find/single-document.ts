import { scanOrder, type FoundDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindQuery, FindQuerySource } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { FindScope } from './find-scope.ts'
import type { FindTally } from './find-tally.ts'
import { SelectorTest } from './selector-test.ts'

/** Returns the id of the only document that a query can find; undefined when it may find several. */
export function onlyId(source: FindQuerySource): string | undefined {
  if (source.kind !== 'documents' || source.start === undefined || source.start.id !== source.end?.id) return undefined
  return source.start.id
}

/**
 * Opens the only document that a query can find, as a read of the document does, and tests it.
 *
 * @returns the document, or nothing when it does not match
 * @throws ApiError when too few replicas answer
 */
export async function findSingle(
  scope: FindScope, db: DatabaseRecord, id: string,
  { selector, after, descending, documents, r = 1, sort }: FindQuery, tally: FindTally, context: OperationContext,
): Promise<readonly FoundDocument[]> {
  const place = { range: 0, key: '', id, number: 0 }
  if (sort === undefined && after !== undefined && scanOrder(descending)(place, after) <= 0) return []
  const opened = await scope.openDocument(db, id, { r }, context)
  const winner = opened?.leaves[0]
  if (opened?.body === undefined || winner === undefined || winner.deleted) return []
  if (r > 1) tally.addQuorumDocument()
  const { body, attachments, leaves } = opened
  const found: FoundDocument = {
    kind: 'found', ...place, value: new Uint8Array(0), revision: winner.revision, body,
    ...(attachments && { attachments }), ...(documents === 'leaves' && { leaves }),
  }
  const isMatch = new SelectorTest(selector, scope.runtime).matches(found)
  tally.add({ keysExamined: 1, documentsExamined: r > 1 ? 0 : 1, matches: isMatch ? 1 : 0 })
  return isMatch ? [found] : []
}
