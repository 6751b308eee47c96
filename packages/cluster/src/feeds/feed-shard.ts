import type { ReplicaError } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import type { ChangeSubscriber, ChangeWatch } from '../replicas/change-watches.ts'
import type { ShardPosition } from '../replicas/changes-position.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { Standing } from '../replicas/replica-standings.ts'

export interface FeedShardOwner {
  /** Called when the change or the replica that the shard waited for has arrived, or when the wait has failed. */
  resume(shard: FeedShard, failure?: ReplicaError): void
}

/**
 * The state of one shard of a feed. There are many idle feeds with many shards, so the object is small: it is its own
 * subscriber and needs no closure.
 */
export class FeedShard implements ChangeSubscriber {
  readonly index: number
  readonly place: ShardPlace
  /** The reader's position. At most one page of rows is handed over but not yet included. */
  readonly position: ShardPosition
  readonly #owner: FeedShardOwner
  /** Nodes that failed since the last page. */
  failures: Set<string> | undefined = undefined
  /** The standing of the replica that is read; shared with other feeds. */
  attached: Standing | undefined = undefined
  /** The sequence that the position reaches once the replica has no more rows. */
  target = 0
  /** True when the shard was read to the end of the replica's log. */
  drained = false
  /** True when the position has changed since the feed's last token. */
  moved = false
  offered = 0
  taken = 0
  /** Present while the shard waits for changes. */
  watch: ChangeWatch | undefined = undefined
  /** Present while the shard waits for a replica. */
  retry: Timer | undefined = undefined
  /** Monotonic time in milliseconds since which no replica was found. */
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
