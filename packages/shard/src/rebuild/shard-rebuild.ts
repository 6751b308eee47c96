import { ReplicaError } from '@sectional/core'
import { sleep, StorageError } from '@sectional/runtime'
import type { Clock, Store } from '@sectional/runtime'
import { ShardKeys } from '../records/key-layout.ts'
import type { DirectoryEntry, ShardDirectory } from '../directory/shard-directory.ts'
import type { ShardEngine } from '../engine/shard-engine.ts'
import { ShardRecords } from '../reading/shard-records.ts'
import { salvageShard } from './shard-salvage.ts'
import type { SalvageReport } from './shard-salvage.ts'

/** Milliseconds between two attempts to record the new incarnation in the directory. */
const replaceRetryMs = 1_000

export interface RebuildParts {
  readonly store: Store
  readonly directory: ShardDirectory
  readonly clock: Clock
  /** Makes an engine for the new incarnation; the host does not serve it yet. */
  readonly engine: (entry: DirectoryEntry) => ShardEngine
  /** Aborts when the node stops. */
  readonly signal: AbortSignal
}

/**
 * Makes a new incarnation of a replica whose calls are refused, under a new prefix, with every record of the old
 * incarnation whose checksum holds.
 * @throws any error of reading or writing; the old incarnation then stays and the unfinished one is dropped
 */
export async function rebuildShard(
  { store, directory, clock, engine, signal }: RebuildParts, before: DirectoryEntry,
): Promise<SalvageReport> {
  // After this empty write, every write that was accepted earlier is on the disk.
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
    target.refuse(new ReplicaError('closed', 'the rebuilt replica has another engine now'))
  }
  // A write that failed may be on the disk nevertheless, so neither incarnation can be dropped before a write has
  // succeeded.
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
