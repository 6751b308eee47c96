import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import { isRefused, rulesDesign } from '../workload/value-rule.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/** Milliseconds after which every node knows a design document, when no fault disturbs the cluster. */
const spreadMs = 10_000

/**
 * A value that the rule refuses is not written by a request that begins after the same node has acknowledged the design
 * document with a quorum of the replicas, or that any node receives `spreadMs` later without faults. Neither does its
 * revision appear on a disk after an answer that does not tell what happened.
 */
export function rulesKept({ databases, operations, lostDisks }: FinalState): Findings {
  if (lostDisks > 0) return []
  return [...databases].flatMap(([database, final]) => {
    const ofDatabase = operations.filter(operation => operation.database === database && isOf(operation, final))
    const rules = ofDatabase.filter(({ id, outcome, w }) =>
      id === rulesDesign && outcome === 'done' && (w === undefined || w > final.record.n / 2))
    if (rules.length === 0) return []
    const stored = new Set(final.replicas.flatMap(({ documents }) =>
      [...documents.values()].flatMap(({ leaves }) => leaves.map(({ body }) => String(JSON.parse(body).v)))))
    return ofDatabase
      .filter(write => isSubject(write) && rules.some(rule => isKnown(rule, write)))
      .filter(({ value, outcome }) => outcome === 'done' || outcome === 'accepted' || stored.has(value))
      .map(write => `${describe(write)} has written ${write.value}, which the validation function refuses`)
  })
}

/** Design documents are not validated. */
function isSubject(operation: Operation): boolean {
  return makesRevision(operation) && isRefused(operation.value) && !operation.id.startsWith('_design/')
}

/** Returns whether the node that received the write knew the rule. */
function isKnown(rule: Operation, write: Operation): boolean {
  return rule.node === write.node
    ? write.startMs >= rule.endMs
    : write.calm && write.startMs >= rule.endMs + spreadMs
}
