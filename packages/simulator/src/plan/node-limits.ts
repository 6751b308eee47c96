import type { NodeSeams } from '@sectional/server'
import type { Dice } from '../world/dice.ts'

/** Limits of every node that are smaller than in production, so that a run reaches them. */
export type NodeLimits = Required<Pick<NodeSeams, 'antiEntropy' | 'caches' | 'coordinator'>>

/**
 * Draws small limits for half of the runs: queues, batches and caches that a few documents fill, and comparisons of
 * digests that a run would otherwise not reach.
 */
export function drawNodeLimits(dice: Dice): NodeLimits | undefined {
  if (dice.chance(0.5)) return undefined
  return {
    antiEntropy: some(dice, {
      passesMax: [1, 2], batchDocumentsMax: [1, 3, 20], batchBytesMax: [200, 20_000], checkpointRows: [1, 5],
      digestIntervalMs: [10_000, 60_000, 600_000], digestBuckets: [1, 16],
    }),
    coordinator: some(dice, {
      batchDocumentsMax: [1, 2, 5], batchBytesMax: [200, 20_000], nodeStoresMax: [1, 3], requestCallsMax: [1, 2],
      repairsRunningMax: [1], repairsQueuedMax: [1, 5], listPageRows: [1, 2, 5], listPageBytes: [100, 5000],
      tailRows: [1, 3],
    }),
    caches: some(dice.fork('caches'), { filterBytesMax: [0, 1024, 4096], keptBytesMax: [600, 3000] }),
  }
}

/** Draws one of the values of each limit, and leaves out some of the limits. */
function some<Name extends string>(
  dice: Dice, limits: Readonly<Record<Name, readonly number[]>>,
): Partial<Record<Name, number>> {
  const drawn: Partial<Record<Name, number>> = {}
  for (const [name, values] of Object.entries<readonly number[]>(limits)) {
    if (dice.chance(0.4)) drawn[name as Name] = dice.pick(values)
  }
  return drawn
}
