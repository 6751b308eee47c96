import { parseRevision } from '@sectional/core'
import { majority } from '@sectional/server'
import { makesRevision, type Operation } from '../workload/history.ts'
import { describe, isOf } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'
import { revsLimitMin } from './one-branch.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * At most one of the edits of one revision is acknowledged with 201, whatever faults occur; equal deletions count too.
 * This holds if w is a majority and no disk was lost. It does not hold for documents that were purged, because the same
 * revision can then be edited again, nor when the document went on for `_revs_limit` revisions: the replicas then no
 * longer know that the revision was edited, and take it for a new branch when a replica that was away still has it.
 */
export function oneSuccess({ databases, lostDisks, operations }: FinalState): Findings {
  if (lostDisks > 0) return []
  const purges = new PurgeRecords(operations)
  const successes = operations.filter(operation => {
    const { database, id, kind, parent, outcome, w, activeBefore } = operation
    const final = databases.get(database)
    if (final === undefined || final.record.revsLimit < revsLimitMin || parent === null || outcome !== 'done'
      || kind === 'graft' || kind === 'purge' || !isOf(operation, final)) return false
    return operation.revision !== undefined && (w === undefined || w >= majority(activeBefore))
      && purges.ofDocument(database, id).length === 0
  })
  return [...Map.groupBy(successes, ({ database, id, parent }) => `${database}/${id} ${parent}`)]
    .flatMap(([edited, edits]) => {
      const { revsLimit } = databases.get(edits[0]!.database)!.record
      return edits.length < 2 || edits.some(edit => revisionsSince(edit, operations) >= revsLimit)
        ? []
        : [`${edits.length} edits of ${edited} succeeded: ${edits.map(describe).join(', ')}`]
    })
}

/** Returns by how many generations the document was, at most, ahead of the edited revision when the edit ended. */
function revisionsSince({ database, id, parent, endMs }: Operation, operations: readonly Operation[]): number {
  const newest = operations
    .filter(other => makesRevision(other) && other.database === database && other.id === id && other.startMs <= endMs)
    .flatMap(({ revision, parent: edited, paths = [] }) => [
      ...[revision, edited].flatMap(named => named == null ? [] : [parseRevision(named).generation]),
      ...paths.map(({ start }) => start),
    ])
  return Math.max(0, ...newest) - parseRevision(parent!).generation
}

/** A write that was answered with a conflict never takes effect: no read returns it, and no leaf has its body. */
export function conflictsAreFinal({ databases, operations }: FinalState): Findings {
  const refused = new Map<string, Operation>()
  for (const operation of operations) {
    if (operation.kind === 'write' && operation.conflict) {
      refused.set(`${operation.database} ${operation.value}`, operation)
    }
  }
  const stored = [...databases].flatMap(([name, { documents }]) => [...documents.values()].flatMap(({ leaves }) => (
    leaves.map(({ body }) => `${name} ${(JSON.parse(body) as { readonly v?: string }).v}`))))
  const read = operations.filter(({ kind }) => kind === 'read')
    .map(({ database, readValue }) => `${database} ${readValue}`)
  return [...new Set([...stored, ...read])].flatMap(value => {
    const operation = refused.get(value)
    return operation === undefined ? [] : [`${describe(operation)} was answered with a conflict and took effect`]
  })
}
