/** Edits of a document that three replicas have. */
import type { ApiError } from '@sectional/core'
import type { WriteOutcome } from '../src/contracts/coordinator.ts'
import { edit, ReplicaWorld, request } from './replica-world.ts'

export type Edit = ReturnType<typeof edit>

/** Returns the revision that an edit makes, unless it restores a deleted document. */
export function revisionOf({ parent, revisionHash }: Edit): string {
  return `${parent === null ? 1 : Number.parseInt(parent, 10) + 1}-${revisionHash}`
}

/** Returns the only outcome, or the status of the error. */
export async function outcomeOf(written: Promise<readonly WriteOutcome[]>): Promise<WriteOutcome | number> {
  return written.then(([outcome]) => outcome!, (error: ApiError) => error.status)
}

/** Makes three replicas that have the first revision of `x`. */
export async function worldWithDocument(): Promise<{ readonly world: ReplicaWorld; readonly parent: string }> {
  const world = new ReplicaWorld()
  const first = edit('x', null, { v: 0 })
  const coordinator = world.coordinator('a')
  await coordinator.updateDocuments(world.db, [first], { w: 3 }, request())
  await coordinator.stop()
  return { world, parent: revisionOf(first) }
}
