import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import { missedWrite } from './missed-write.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Milliseconds before a query in which the node that was asked has certainly not been started again: the query ran
 * without faults, and none had ended for so long.
 */
const sameProcessMs = 30_000

/**
 * Without faults, a query of a view with update=true, or by selector, sees every write and every purge that the same
 * node acknowledged before it began, whichever quorum they asked for. (During faults, replicas that have confirmed a
 * write may be unreachable.)
 */
export function viewsFresh({ databases, operations }: FinalState): Findings {
  const purges = new PurgeRecords(operations)
  return operations.flatMap(query => {
    const final = databases.get(query.database)
    if (query.kind !== 'custom:query-own' || query.outcome !== 'done' || !query.calm || final === undefined
      || !isOf(query, final)) {
      return []
    }
    const ofDocument = operations.filter(({ database, id }) => database === query.database && id === query.id)
    const before = ofDocument.filter(operation => isSeen(operation, query, final))
    const missed = purges.ofDocument(query.database, query.id).length > 0
      ? before.find(purge => isShown(purge, query, ofDocument))
      : unseenWrite(query, before, ofDocument, final)
    return missed === undefined ? [] : [`${describe(query)} did not see ${describe(missed)}`]
  })
}

function isSeen(operation: Operation, query: Operation, final: FinalDatabase): boolean {
  const { endMs, node, outcome } = operation
  return node === query.node && (outcome === 'done' || outcome === 'accepted') && isOf(operation, final)
    && endMs <= query.startMs && endMs > query.startMs - sameProcessMs
}

function unseenWrite(
  query: Operation, before: readonly Operation[], ofDocument: readonly Operation[], { documents }: FinalDatabase,
): Operation | undefined {
  const contents = documents.get(query.id)
  const writes = before.filter(write => makesRevision(write) && write.revision !== undefined)
  return contents && missedWrite(query, writes, ofDocument, contents)
}

/**
 * Returns whether the query shows a revision that the purge had removed, and that nobody can have written again: equal
 * contents get the same revision.
 */
function isShown(purge: Operation, query: Operation, ofDocument: readonly Operation[]): boolean {
  const { kind, removed = [], startMs } = purge
  return kind === 'purge' && query.revision !== undefined && removed.includes(query.revision)
    && !ofDocument.some(other => other.kind === 'graft' || other.kind === 'attach' || other.kind === 'detach'
      || (makesRevision(other) && other.endMs > startMs
        && (other.revision === undefined || other.revision === query.revision)))
}
