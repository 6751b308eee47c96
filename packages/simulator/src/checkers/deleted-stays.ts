import { describe, isOf } from './final-state.ts'
import type { FinalDatabase, FinalState, Findings } from './final-state.ts'
import type { Operation } from '../workload/history.ts'
import { isShared } from '../workload/shared-values.ts'

/**
 * Deleted data does not return: a deleted database is gone; a document whose tombstone was acknowledged is gone unless
 * a client wrote it again; a re-created database contains nothing that was written to an earlier database of its name.
 */
export function deletedStays({ databases, lostDisks, operations }: FinalState): Findings {
  return [...databases].flatMap(([name, final]) => {
    const own = operations.filter(({ database }) => database === name)
    return [
      ...deletedDatabase(name, final, own, lostDisks), ...resurrected(final, own), ...fromEarlier(name, final, own),
    ]
  })
}

/**
 * An acknowledged deletion (200) takes effect. A promised one (202) may be lost together with the disk on which it was
 * recorded.
 */
function deletedDatabase(
  name: string, { record }: FinalDatabase, operations: readonly Operation[], lostDisks: number,
): string[] {
  return operations.filter(({ kind, outcome, incarnationBefore }) => kind === 'delete-database'
    && (outcome === 'done' || (outcome === 'accepted' && lostDisks === 0)) && incarnationBefore === record.incarnation)
    .map(operation => `${describe(operation)} deleted ${name} ${record.incarnation}, which is still there`)
}

function resurrected(final: FinalDatabase, operations: readonly Operation[]): string[] {
  return operations.flatMap(operation => {
    if (operation.kind !== 'delete' || operation.revision === undefined || operation.outcome !== 'done'
      || !isOf(operation, final)) {
      return []
    }
    const branch = final.documents.get(operation.id)?.branches.find(({ path }) =>
      `${path.start}-${path.ids[0]}` === operation.revision)
    if (branch === undefined || branch.deleted) return []
    return [`${describe(operation)} is no tombstone any more`]
  })
}

function fromEarlier(
  name: string, { record, documents, replicas }: FinalDatabase, operations: readonly Operation[],
): string[] {
  const earlier = new Map<string, Operation>()
  for (const operation of operations) {
    const { incarnationAfter, incarnationBefore, outcome, value } = operation
    const isUnique = value !== '' && !isShared(value)
    if (!isUnique || outcome !== 'done' || incarnationBefore === undefined || incarnationBefore !== incarnationAfter
      || incarnationBefore === record.incarnation) continue
    earlier.set(value, operation)
  }
  const bodies = [
    ...[...documents].flatMap(([id, { leaves }]) => leaves.map(({ body }) => ({ id, body }))),
    ...replicas.flatMap(({ locals }) =>
      [...locals.values()].flatMap(({ id, body }) =>
        body === null ? [] : [{ id: `_local/${id}`, body: Buffer.from(body).toString() }])),
  ]
  return bodies.flatMap(({ id, body }) => {
    const writer = earlier.get((JSON.parse(body) as { readonly v?: string }).v ?? '')
    return writer === undefined
      ? []
      : [`${name}/${id} shows what ${describe(writer)} wrote to an earlier database of that name`]
  })
}
