import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import { pathHas } from './purge-records.ts'
import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import { isShared } from '../workload/shared-values.ts'

/** Milliseconds for which a revision that a client sent may be on its way to a replica after the end of the request. */
const underwayMsMax = 300_000

/**
 * A revision that an acknowledged purge removed is not a leaf at the end. There are exceptions. An edit of it that was
 * in progress may keep it as an ancestor. A client may bring it back with its history, or by repeating the same edit,
 * which results in the same revision. Only writes with a value of their own cannot repeat another one.
 */
export function purgedStays({ databases, lostDisks, operations }: FinalState): Findings {
  return [...databases].flatMap(([name, final]) => {
    const own = operations.filter(({ database }) => database === name)
    const writings = Map.groupBy(
      own.filter(operation => operation.outcome !== 'failed' && makesRevision(operation)), ({ id }) => id,
    )
    return own.flatMap(purge => {
      if (purge.kind !== 'purge' || !isOf(purge, final)
        || (purge.outcome !== 'done' && (purge.outcome !== 'accepted' || lostDisks > 0))) {
        return []
      }
      return resurrected(purge, final, writings.get(purge.id) ?? [])
        .map(revision => `${describe(purge)} removed ${revision}, which is there again`)
    })
  })
}

function resurrected(
  { id, paths = [], removed = [], startMs }: Operation, { documents }: FinalDatabase, writings: readonly Operation[],
): string[] {
  const gone = paths.filter(({ start, ids }) => removed.includes(`${start}-${ids[0]}`))
  const brought = (revision: string): boolean => writings.some(
    ({ kind, value, paths: written = [], revision: made, endMs }) => kind === 'graft'
      ? endMs > startMs - underwayMsMax && written.some(path => pathHas(path, revision))
      : endMs > startMs && (made === revision || (made === undefined && !isUnique(kind, value))),
  )
  return (documents.get(id)?.leaves ?? []).map(({ revision }) => revision)
    .filter(revision => gone.some(path => pathHas(path, revision)) && !brought(revision))
}

function isUnique(kind: Operation['kind'], value: string): boolean {
  return kind === 'write' && !isShared(value)
}
