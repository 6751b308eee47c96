import { ReplicaError } from '@sectional/core'
import { sleep, StorageError } from '@sectional/runtime'
import type { Clock, Store } from '@sectional/runtime'
import { ShardKeys } from '../records/key-layout.ts'
import type { DirectoryEntry, ShardDirectory } from '../directory/shard-directory.ts'
import type { ShardEngine } from '../engine/shard-engine.ts'
import { ShardRecords } from '../reading/shard-records.ts'
import { salvageShard } from './shard-salvage.ts'
import type { SalvageReport } from './shard-salvage.ts'

/** Between two attempts to write down that a shard has begun another life. Milliseconds. */
const replaceRetryMs = 1_000

export interface RebuildParts {
  readonly store: Store
  readonly directory: ShardDirectory
  readonly clock: Clock
  /** An engine of the new life, which nobody else knows. */
  readonly engine: (entry: DirectoryEntry) => ShardEngine
  /** The node stops. */
  readonly signal: AbortSignal
}

/**
 * Another life of a replica whose calls are refused: a new prefix with everything of the old one whose checksums hold.
 * @throws what reading or writing throws: the old life goes on then, and what was begun is dropped
 */
export async function rebuildShard(
  { store, directory, clock, engine, signal }: RebuildParts, before: DirectoryEntry,
): Promise<SalvageReport> {
  // What was accepted before is on the disk after this.
  await store.write(() => {})
  const after = await directory.reserve(before)
  const target = engine(after)
  let report
  try {
    report = await salvageShard(
      new ShardRecords(store, new ShardKeys(before.prefix), before.partitioned), target, signal,
    )
  } catch (error) {
    directory.abandon(after)
    throw error
  } finally {
    target.refuse(new ReplicaError('closed', 'the life that this engine served has begun'))
  }
  // A write that failed may have landed, so neither life can be given up before one has succeeded.
  for (;;) {
    try {
      await directory.replace(before, after)
      return report
    } catch (error) {
      if (signal.aborted || !(error instanceof StorageError) || error.code === 'closed') throw error
      await sleep(clock, replaceRetryMs, signal)
    }
  }
}
