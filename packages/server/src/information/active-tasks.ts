/** The background tasks of a node as `_active_tasks` lists them (docs/reference/server.md). */
import { DatabaseMap, type ControlPlane, type RefillTask } from '@sectional/cluster'
import { formatRange, type JsonObject, type ShardId } from '@sectional/core'
import type { CompactionTask, ShardIndexTask } from '@sectional/shard'

/** What all tasks on shards have. */
interface ShardTask {
  readonly shard: ShardId
  readonly changesDone: number
  readonly totalChanges: number
  /** Milliseconds since 1970. */
  readonly startedOn: number
  readonly updatedOn: number
}

export function describeCompaction(control: ControlPlane, task: CompactionTask): JsonObject {
  return describeTask(control, task, 'database_compaction', { phase: task.phase })
}

/** Describes the build of an index. The node that answers a client adds a design document that needs the index. */
export function describeIndexBuild(control: ControlPlane, task: ShardIndexTask): JsonObject {
  const described = describeTask(control, task, 'indexer', { index: task.index })
  return { ...described, indexer_pid: described['pid']! }
}

/** Describes a refill. CouchDB has no such task, so the fields are those of its other tasks, and the source node. */
export function describeRefill(control: ControlPlane, task: RefillTask): JsonObject {
  return describeTask(control, task, 'replica_refill', { source: task.source })
}

/**
 * Describes a task in CouchDB's format: a shard's path, times in seconds, and the shard in place of a process id.
 *
 * @param members further members of tasks of this type
 */
function describeTask(
  control: ControlPlane, { shard, changesDone, totalChanges, startedOn, updatedOn }: ShardTask, type: string,
  members: Readonly<Record<string, string>>,
): JsonObject {
  const range = formatRange(shard.range)
  const name = DatabaseMap.withIncarnation(control.state()?.databases ?? new Map(), shard.incarnation)?.name
    ?? shard.incarnation
  return {
    node: control.node, pid: `<${[type, range, ...Object.values(members)].join(' ')}>`, type,
    database: `shards/${range}/${name}`, ...members,
    progress: totalChanges === 0 ? 100 : Math.floor(100 * changesDone / totalChanges),
    changes_done: changesDone, total_changes: totalChanges,
    started_on: Math.floor(startedOn / 1000), updated_on: Math.floor(updatedOn / 1000),
  }
}
