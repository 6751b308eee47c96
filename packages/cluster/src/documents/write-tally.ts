import { activeReplicas } from '../control/cluster-state.ts'
import { jointWriteVerdict, writeQuorum } from '../quorum/write-quorum.ts'
import type { WriteQuorum, WriteVerdict } from '../quorum/write-quorum.ts'
import type { ReplicaAccess, ShardPlace } from '../replicas/replica-access.ts'

/**
 * Counts the replicas that have one write on disk and those that failed, and evaluates the quorum by the current shard
 * map.
 */
export class WriteTally {
  readonly #access: ReplicaAccess
  readonly #place: ShardPlace
  readonly #w: number | undefined
  readonly #durable: string[] = []
  readonly #failed: string[] = []

  /** @param w the client's `w`; undefined for the default */
  constructor(access: ReplicaAccess, place: ShardPlace, w: number | undefined) {
    this.#access = access
    this.#place = place
    this.#w = w
  }

  durable(node: string): void {
    this.#durable.push(node)
  }

  failed(node: string): void {
    this.#failed.push(node)
  }

  verdict(): WriteVerdict {
    const now = this.#access.now(this.#place)
    const quorum = this.#quorum(this.#place)
    return jointWriteVerdict(now === this.#place ? [quorum] : [quorum, this.#quorum(now)])
  }

  /** Only active replicas count towards the quorum. */
  #quorum({ record }: ShardPlace): WriteQuorum {
    const active = activeReplicas(record)
    let [durable, failed] = [0, 0]
    for (const { node } of active) {
      if (this.#durable.includes(node)) durable++
      else if (this.#failed.includes(node)) failed++
    }
    return { ...writeQuorum(active.length, this.#w), durable, failed }
  }
}
