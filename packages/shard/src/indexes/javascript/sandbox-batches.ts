import { ReplicaError, type ReplicaErrorCode } from '@sectional/core'
import { failureText, SandboxError, type SandboxErrorCode } from '@sectional/runtime'

/** Most documents or argument lists of one call of the sandbox. */
const batchItemsMax = 256
/** Bytes after which a call of the sandbox takes no further document or argument list. */
export const batchBytesMax = 1024 * 1024
/** Number of items that may fail alone. At the limits' defaults they take about a minute. */
const failedItemsMax = 10

/** Codes of failures of a call that one of its items may have caused. */
export const itemFailures: ReadonlySet<SandboxErrorCode> = new Set(['timeout', 'memory', 'crashed', 'too_large'])

/** How the other failures of the sandbox are reported to the coordinator. */
const replicaCodes: Partial<Record<SandboxErrorCode, ReplicaErrorCode>> = {
  compilation: 'compilation', unsupported: 'unsupported', overloaded: 'overloaded', closed: 'closed',
}

/** Divides items into runs of at most `batchItemsMax`; a run ends with the item that reaches `batchBytesMax`. */
export function inBatches<Item>(items: readonly Item[], bytesOf: (item: Item) => number): readonly (readonly Item[])[] {
  const batches: Item[][] = []
  let bytes = Infinity
  for (const item of items) {
    if (bytes >= batchBytesMax || batches.at(-1)!.length >= batchItemsMax) {
      batches.push([])
      bytes = 0
    }
    batches.at(-1)!.push(item)
    bytes += bytesOf(item)
  }
  return batches
}

export interface BatchOutcomes<Outcome> {
  /** For each item its outcome, or the error with which it fails alone. Outcomes of the last items may be missing. */
  readonly outcomes: readonly (Outcome | SandboxError)[]
  /** The error `exhausted`, when `failedItemsMax` items have failed alone. No further item was tried then. */
  readonly exhausted: ReplicaError | undefined
}

/**
 * Calls the sandbox with the items, in batches. The items of a batch that fails because of the time, memory or size of
 * its results are called one by one. An item may fail after some seconds only, so that dividing the batch in halves
 * would take several times as long.
 *
 * @param isEnough whether the outcomes so far need so much memory that no further call follows
 * @throws ReplicaError `compilation`, `unsupported`, `overloaded`, `closed`; `cancelled` when the signal aborts
 */
export async function callInBatches<Item extends Uint8Array | string, Outcome>(
  items: readonly Item[], call: (batch: readonly Item[]) => Promise<readonly Outcome[]>, signal?: AbortSignal,
  isEnough: () => boolean = () => false,
): Promise<BatchOutcomes<Outcome>> {
  const outcomes: (Outcome | SandboxError)[] = []
  let failed = 0
  let exhausted: ReplicaError | undefined
  const run = async (batch: readonly Item[]): Promise<void> => {
    if (exhausted !== undefined || isEnough()) return
    if (signal?.aborted) throw new ReplicaError('cancelled', 'the call of a function was cancelled')
    try {
      outcomes.push(...await call(batch))
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      if (!itemFailures.has(error.code)) throw replicaFailure(error)
      if (batch.length > 1) {
        for (const item of batch) await run([item])
        return
      }
      outcomes.push(error)
      if (++failed === failedItemsMax) exhausted = exhaustedBy(error)
    }
  }
  for (const batch of inBatches(items, item => item.length)) await run(batch)
  return { outcomes, exhausted }
}

function exhaustedBy(error: SandboxError): ReplicaError {
  const message = `The function failed for ${failedItemsMax} documents or lists of values: ${error.message}`
  return new ReplicaError('exhausted', message, { cause: error })
}

function replicaFailure(error: SandboxError): ReplicaError {
  return new ReplicaError(replicaCodes[error.code] ?? 'protocol', failureText(error.message, error.position), {
    cause: error,
  })
}
