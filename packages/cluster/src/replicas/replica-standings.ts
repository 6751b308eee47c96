import { shardKey } from '@sectional/core'
import type { ReplicaCheckpoint, ReplicaInfo, ShardId } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { activeReplicas } from '../control/cluster-state.ts'
import type { ReplicaPlace, ReplicaSource } from './changes-position.ts'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { Peer, ShardPlace } from './replica-access.ts'

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

type StandingOptions = Pick<CoordinatorOptions, 'readTimeoutMs' | 'stateTimeoutMs' | 'followRefreshMs' | 'standingRefreshMs'>

interface Life {
  readonly history: string
  readonly sequence: number
  /** Monotonic milliseconds when it was met last. */
  readonly at: number
  /** What it had of others when it was asked last in this life. It stood at `sequence` or before, and never has less. */
  readonly seen?: Readonly<Record<string, number>>
}

/** Standings kept; one costs about 300 bytes. */
const keptMax = 2_000
/** One costs about 300 bytes. */
const livesMax = 10_000

/**
 * Where replicas stand, and what they have of others. The latter costs a replica some scans, and a little age does no
 * harm (a place learns less from it), so that it is asked for once in `standingRefreshMs`, however many feeds begin, and
 * once in `followRefreshMs` for those that go on.
 */
export class ReplicaStandings {
  readonly #clock: Clock
  readonly #options: StandingOptions
  readonly #kept = new Map<string, Standing>()
  /** The life of each replica, and where it stood, when it was met last. */
  readonly #lives = new Map<string, Life>()
  readonly #meeting = new Map<string, Promise<void>>()
  readonly #asking = new Map<string, Promise<ReachedStanding>>()

  constructor(clock: Clock, options: StandingOptions) {
    this.#clock = clock
    this.#options = options
  }

  /**
   * With where it stands at this moment; what it has of others is up to `standingRefreshMs` old.
   * @throws ReplicaError
   */
  async now(peer: Peer, place: ShardPlace): Promise<ReachedStanding> {
    const kept = this.#young(peer, place, this.#options.standingRefreshMs)
    if (kept === undefined) return this.#asked(peer, place)
    // Who has seen no life of the replica is told at once where it stands.
    const { history, sequence } = await peer.replica.waitForChange({ history: '', sequence: 0 }, { timeoutMs: this.#options.readTimeoutMs })
    return history === kept.source.history ? { standing: kept, sequence } : this.#asked(peer, place)
  }

  /** One that is young enough for a feed that goes on. @throws ReplicaError */
  async recent(peer: Peer, place: ShardPlace): Promise<ReachedStanding> {
    const kept = this.#young(peer, place, this.#options.followRefreshMs)
    return kept === undefined ? this.#asked(peer, place) : { standing: kept, sequence: kept.source.sequence }
  }

  /** A replica has told which life it lives, and where it stands; or also what it has of others. */
  meet(node: string, shard: ShardId, { history, sequence, seen }: ReplicaCheckpoint & Pick<Life, 'seen'>): void {
    const key = keyOf(node, shard)
    const before = this.#lives.get(key)
    const known = seen ?? (before?.history === history ? before.seen : undefined)
    this.#lives.delete(key)
    this.#lives.set(key, { history, sequence, at: this.#clock.monotonic(), ...(known === undefined ? {} : { seen: known }) })
    if (this.#lives.size > livesMax) this.#lives.delete(this.#lives.keys().next().value!)
  }

  /** Whether the replica was met less than `standingRefreshMs` ago. */
  isMet(node: string, shard: ShardId): boolean {
    const life = this.#lives.get(keyOf(node, shard))
    return life !== undefined && this.#clock.monotonic() - life.at < this.#options.standingRefreshMs
  }

  /** Keeps what a replica has said of itself. */
  keep(peer: Peer, place: ShardPlace, { history, sequence, seen }: ReplicaInfo): Standing {
    const key = keyOf(peer.node, place.id)
    this.meet(peer.node, place.id, { history, sequence, seen })
    const standing = this.completed({ peer, source: { node: peer.node, history, sequence, seen }, at: this.#clock.monotonic() }, place)
    this.#kept.delete(key)
    this.#kept.set(key, standing)
    if (this.#kept.size > keptMax) this.#kept.delete(this.#kept.keys().next().value!)
    return standing
  }

  /**
   * Asks a replica what it has of others, unless that was asked less than `standingRefreshMs` ago.
   * @throws ReplicaError after `stateTimeoutMs` too
   */
  async ask(peer: Peer, place: ShardPlace): Promise<void> {
    const { standingRefreshMs, stateTimeoutMs } = this.#options
    if (this.#young(peer, place, standingRefreshMs) === undefined) await this.#asked(peer, place, stateTimeoutMs)
  }

  /**
   * Nodes whose replicas are not known to have all that this one has, while this one has all that they have: only
   * they keep the list of all replicas from being told.
   */
  unproven({ source }: Standing, { id, record }: ShardPlace): readonly string[] {
    const nodes: string[] = []
    for (const { node } of activeReplicas(record)) {
      if (node === source.node) continue
      const life = this.#lives.get(keyOf(node, id))
      if (life === undefined || (source.seen[life.history] ?? 0) < life.sequence) return []
      if ((life.seen?.[source.history] ?? 0) < source.sequence) nodes.push(node)
    }
    return nodes
  }

  /** With the list of all replicas, where each of them has been met by now, and all have what the others have. */
  completed(standing: Standing, place: ShardPlace): Standing {
    const all = this.#everyReplica(place, standing.source)
    if (all === undefined) return standing
    const completed = { ...standing, source: { ...standing.source, all } }
    const key = keyOf(standing.peer.node, place.id)
    if (this.#kept.get(key) === standing) this.#kept.set(key, completed)
    return completed
  }

  /** Resolves when the replica has told which life it lives, or has not; once for all who ask at the same time. */
  meeting(node: string, shard: ShardId, ask: () => Promise<void>): Promise<void> {
    const key = keyOf(node, shard)
    let meeting = this.#meeting.get(key)
    if (meeting === undefined) this.#meeting.set(key, meeting = ask().finally(() => { this.#meeting.delete(key) }))
    return meeting
  }

  #young(peer: Peer, place: ShardPlace, msMax: number): Standing | undefined {
    const kept = this.#kept.get(keyOf(peer.node, place.id))
    return kept !== undefined && this.#clock.monotonic() - kept.at < msMax ? kept : undefined
  }

  /** undefined: a replica has not been met, or this one is not known to have all of it, or the other way round. */
  #everyReplica({ id, record }: ShardPlace, source: ReplicaSource): readonly ReplicaPlace[] | undefined {
    const all: ReplicaPlace[] = []
    for (const { node } of activeReplicas(record)) {
      const life = this.#lives.get(keyOf(node, id))
      if (life === undefined) return undefined
      const { history } = life
      const sequence = node === source.node ? source.sequence : source.seen[history] ?? 0
      const hasAll = node === source.node || (life.seen?.[source.history] ?? 0) >= source.sequence
      if (!hasAll || (node !== source.node && sequence < life.sequence)) return undefined
      all.push({ node, history, sequence })
    }
    return all.sort((a, b) => a.node < b.node ? -1 : 1)
  }

  /** Once for all who ask at the same time. */
  #asked(peer: Peer, place: ShardPlace, timeoutMs = this.#options.readTimeoutMs): Promise<ReachedStanding> {
    const key = keyOf(peer.node, place.id)
    const asking = this.#asking.get(key)
    if (asking !== undefined) return asking
    const asked = peer.replica.replicaInfo({ timeoutMs })
      .then(info => ({ standing: this.keep(peer, place, info), sequence: info.sequence })).finally(() => { this.#asking.delete(key) })
    this.#asking.set(key, asked)
    return asked
  }
}

function keyOf(node: string, shard: ShardId): string {
  return `${node} ${shardKey(shard)}`
}
