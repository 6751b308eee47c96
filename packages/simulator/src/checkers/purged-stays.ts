import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import { pathHas } from './purge-records.ts'
import type { Operation } from '../workload/history.ts'

/** A revision that a client brings may be on its way to a replica for so long after its request has ended. */
const underwayMsMax = 300_000

/**
 * What an acknowledged purge removed is no leaf at the end. (An edit of it that was under way may keep it as an ancestor;
 * a client that brings it with its history brings it back.)
 */
export function purgedStays({ databases, lostDisks, operations }: FinalState): Findings {
  return [...databases].flatMap(([name, final]) => {
    const own = operations.filter(({ database }) => database === name)
    const grafts = Map.groupBy(own.filter(({ kind, outcome }) => kind === 'graft' && outcome !== 'failed'), ({ id }) => id)
    return own.flatMap(purge => {
      if (purge.kind !== 'purge' || !isOf(purge, final) || (purge.outcome !== 'done' && (purge.outcome !== 'accepted' || lostDisks > 0))) return []
      return resurrected(purge, final, grafts.get(purge.id) ?? []).map(revision => `${describe(purge)} removed ${revision}, which is there again`)
    })
  })
}

function resurrected({ id, paths = [], removed = [], startMs }: Operation, { documents }: FinalDatabase, grafts: readonly Operation[]): string[] {
  const gone = paths.filter(({ start, ids }) => removed.includes(`${start}-${ids[0]}`))
  const brought = (revision: string): boolean => grafts.some(graft => graft.endMs > startMs - underwayMsMax && (graft.paths ?? []).some(path => pathHas(path, revision)))
  return (documents.get(id)?.leaves ?? []).map(({ revision }) => revision).filter(revision => gone.some(path => pathHas(path, revision)) && !brought(revision))
}
