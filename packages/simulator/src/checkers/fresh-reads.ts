import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import { missedWrite } from './missed-write.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Without faults, a read with r + w > n sees every write that was acknowledged before it began. (During faults fewer
 * than r replicas may answer a read, and the response does not show that.)
 */
export function freshReads({ databases, operations }: FinalState): Findings {
  const written = Map.groupBy(
    operations.filter(operation =>
      makesRevision(operation) && operation.outcome === 'done' && operation.revision !== undefined),
    ({ database, id }) => `${database}/${id}`,
  )
  const purges = new PurgeRecords(operations)
  return operations.flatMap(read => {
    const final = databases.get(read.database)
    if (read.kind !== 'read' || read.outcome !== 'done' || !read.calm || final === undefined || !isOf(read, final)) {
      return []
    }
    const contents = final.documents.get(read.id)
    // A purge can remove what was written after a revision, including tombstones.
    if (contents === undefined || purges.ofDocument(read.database, read.id).length > 0) return []
    const before = (written.get(`${read.database}/${read.id}`) ?? []).filter(write =>
      write.endMs <= read.startMs && isOf(write, final) && overlap(read, write, final))
    const ofDocument = operations.filter(({ database, id }) => database === read.database && id === read.id)
    const missed = missedWrite(read, before, ofDocument, contents)
    return missed === undefined ? [] : [`${describe(read)} did not see ${describe(missed)}`]
  })
}

/** Returns whether r + w > n for the values that both requests asked for. */
function overlap(read: Operation, write: Operation, { record }: FinalDatabase): boolean {
  const n = Math.max(...record.shards.map(shard => shard.replicas.length))
  const usual = Math.floor(n / 2) + 1
  return Math.min(read.r ?? usual, n) + Math.min(write.w ?? usual, n) > n
}
