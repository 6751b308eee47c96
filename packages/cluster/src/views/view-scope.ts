import type { ImmediateIndexReads, IndexReplica, ShardId } from '@sectional/core'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { IndexFingerprints } from './index-fingerprints.ts'
import { IndexIds } from './index-ids.ts'
import { LazyBuilds } from './lazy-builds.ts'
import { MergedGroups } from './merged-groups.ts'
import { NewestReaders } from './newest-readers.ts'
import type { WatchScope } from '../shard-calls/silence-watch.ts'

/** Finds the indexes of replicas, on this node and on others. */
export interface IndexDirectory {
  /**
   * Always returns an object. Calls for a replica that does not exist or cannot be reached reject with `not_hosted` or
   * `unreachable`.
   */
  indexes(node: string, shard: ShardId): IndexReplica
  /** Returns reads from memory of this node's replica; undefined when there is none, or its indexes are not open. */
  immediate?(shard: ShardId): ImmediateIndexReads | undefined
}

/** Limits of view queries, in milliseconds. */
export interface ViewOptions {
  /**
   * Longest time of one call that waits for a build. The coordinator then calls again, so that it notices a silent
   * node, and knows how far the build is.
   */
  readonly buildWaitMs: number
  /** Time after which another replica is asked to build, too, when the first one is still behind. */
  readonly buildHedgeMs: number
}

export const defaultViewOptions: ViewOptions = Object.freeze({
  buildWaitMs: 5_000, buildHedgeMs: 250,
})

/** The dependencies of view queries. */
export interface ViewScope extends WatchScope, ViewMemory, Pick<CoordinatorScope, 'access' | 'pages' | 'unconfirmed'> {
  readonly indexes: IndexDirectory
  readonly viewOptions: ViewOptions
}

/** What a coordinator remembers of earlier view queries. */
export interface ViewMemory {
  readonly indexIds: IndexIds
  readonly indexFingerprints: IndexFingerprints
  readonly lazyBuilds: LazyBuilds
  readonly mergedGroups: MergedGroups
  readonly newestReaders: NewestReaders
}

/** @param stopping aborts when the coordinator stops */
export function createViewMemory(stopping: AbortSignal): ViewMemory {
  return {
    indexIds: new IndexIds(), indexFingerprints: new IndexFingerprints(), lazyBuilds: new LazyBuilds(stopping),
    mergedGroups: new MergedGroups(), newestReaders: new NewestReaders(),
  }
}
