import type { ReplicaError } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import type { ChangeSubscriber, ChangeWatch } from '../replicas/change-watches.ts'
import type { ShardPosition } from '../replicas/changes-position.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { Standing } from '../replicas/replica-standings.ts'

export interface FeedShardOwner {
  /** What the shard waited for has come, or cannot come any more. */
  resume(shard: FeedShard, failure?: ReplicaError): void
}

/**
 * One shard of a feed. Idle feeds are many and have many shards, so this is all that one of them holds: it subscribes
 * itself, without a function for each.
 */
export class FeedShard implements ChangeSubscriber {
  readonly index: number
  readonly place: ShardPlace
  /** Where the reader is; ahead of it lies at most the page that it holds. */
  readonly position: ShardPosition
  readonly #owner: FeedShardOwner
  /** Nodes that failed since the last page. */
  failures: Set<string> | undefined = undefined
  /** Shared with other feeds. */
  attached: Standing | undefined = undefined
  /** Everything up to here is behind the reader once the replica has no more rows. */
  target = 0
  /** Read to the replica's end. */
  drained = false
  /** Since the feed's last token. */
  moved = false
  offered = 0
  taken = 0
  /** While it waits for changes. */
  watch: ChangeWatch | undefined = undefined
  /** While it waits for a replica. */
  retry: Timer | undefined = undefined
  /** Monotonic milliseconds since when no replica was found. */
  lostSince: number | undefined = undefined

  constructor(owner: FeedShardOwner, index: number, place: ShardPlace, position: ShardPosition) {
    this.#owner = owner
    this.index = index
    this.place = place
    this.position = position
  }

  changed(sequence: number): void {
    this.target = sequence
    this.watch = undefined
    this.#owner.resume(this)
  }

  failed(error: ReplicaError): void {
    this.watch = undefined
    this.#owner.resume(this, error)
  }

  stopWaiting(): void {
    this.watch?.remove(this)
    this.watch = undefined
    this.retry?.cancel()
    this.retry = undefined
  }
}
