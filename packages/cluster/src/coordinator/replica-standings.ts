import { formatRange } from '@sectional/core'
import type { ReplicaInfo, ShardId } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import type { ReplicaSource } from './changes-position.ts'
import type { CoordinatorOptions } from './coordinator-options.ts'
import type { Peer } from './replica-access.ts'

/** What a replica said of itself, for all feeds that read it. */
export interface Standing {
  readonly peer: Peer
  readonly source: ReplicaSource
  /** Monotonic milliseconds when it was asked. */
  readonly at: number
}

export interface ReachedStanding {
  readonly standing: Standing
  /** Where the replica stands now. */
  readonly sequence: number
}

/** Standings kept; one costs about 300 bytes. */
const keptMax = 2_000

/**
 * Where replicas stand, and what they have of others. The latter costs a replica some scans, and a little age does no
 * harm (a place learns less from it), so that it is asked for once in `followRefreshMs`, however many feeds begin.
 */
export class ReplicaStandings {
  readonly #clock: Clock
  readonly #options: Pick<CoordinatorOptions, 'readTimeoutMs' | 'followRefreshMs'>
  readonly #kept = new Map<string, Standing>()
  readonly #asking = new Map<string, Promise<ReachedStanding>>()

  constructor(clock: Clock, options: Pick<CoordinatorOptions, 'readTimeoutMs' | 'followRefreshMs'>) {
    this.#clock = clock
    this.#options = options
  }

  /** With where it stands at this moment. @throws ReplicaError */
  async now(peer: Peer, shard: ShardId): Promise<ReachedStanding> {
    const key = keyOf(peer, shard)
    const kept = this.#kept.get(key)
    if (kept === undefined || this.#clock.monotonic() - kept.at >= this.#options.followRefreshMs) return this.#asked(key, peer)
    // Who has seen no life of the replica is told at once where it stands.
    const { history, sequence } = await peer.replica.waitForChange({ history: '', sequence: 0 }, { timeoutMs: this.#options.readTimeoutMs })
    return history === kept.source.history ? { standing: kept, sequence } : this.#asked(key, peer)
  }

  /** One that is young enough. @throws ReplicaError */
  async recent(peer: Peer, shard: ShardId): Promise<ReachedStanding> {
    const key = keyOf(peer, shard)
    const kept = this.#kept.get(key)
    if (kept !== undefined && this.#clock.monotonic() - kept.at < this.#options.followRefreshMs) return { standing: kept, sequence: kept.source.sequence }
    return this.#asked(key, peer)
  }

  /** What was kept of that life of the replica. */
  known(peer: Peer, shard: ShardId, history: string): ReplicaSource | undefined {
    const source = this.#kept.get(keyOf(peer, shard))?.source
    return source?.history === history ? source : undefined
  }

  /** Once for all who ask at the same time. */
  #asked(key: string, peer: Peer): Promise<ReachedStanding> {
    const asking = this.#asking.get(key)
    if (asking !== undefined) return asking
    const asked = peer.replica.replicaInfo({ timeoutMs: this.#options.readTimeoutMs })
      .then(info => this.#keep(key, peer, info)).finally(() => { this.#asking.delete(key) })
    this.#asking.set(key, asked)
    return asked
  }

  #keep(key: string, peer: Peer, { history, sequence, seen }: ReplicaInfo): ReachedStanding {
    const standing = { peer, source: { node: peer.node, history, sequence, seen }, at: this.#clock.monotonic() }
    this.#kept.delete(key)
    this.#kept.set(key, standing)
    if (this.#kept.size > keptMax) this.#kept.delete(this.#kept.keys().next().value!)
    return { standing, sequence }
  }
}

function keyOf(peer: Peer, { incarnation, range }: ShardId): string {
  return `${peer.node} ${incarnation} ${formatRange(range)}`
}
