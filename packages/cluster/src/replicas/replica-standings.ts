import { newestPosition, shardKey } from '@sectional/core'
import type { ReplicaCheckpoint, ReplicaInfo, ShardId } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { activeReplicas } from '../control/cluster-state.ts'
import type { ReplicaPlace, ReplicaSource } from './changes-position.ts'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { Peer, ShardPlace } from './replica-access.ts'

/** What a replica reported about itself, shared by all feeds that read it. */
export interface Standing {
  readonly peer: Peer
  readonly source: ReplicaSource
  /** Monotonic time in milliseconds at which the replica was asked. */
  readonly at: number
}

export interface ReachedStanding {
  readonly standing: Standing
  /** The current sequence of the replica. */
  readonly sequence: number
}

type StandingOptions = Pick<CoordinatorOptions,
  'readTimeoutMs' | 'stateTimeoutMs' | 'followRefreshMs' | 'standingRefreshMs'>

/** What a replica reported last. */
interface ReplicaReport {
  readonly history: string
  readonly sequence: number
  /** Monotonic time in milliseconds of the last report. */
  readonly at: number
  /**
   * For each history of another replica, the sequence up to which this replica had its changes when it was last asked.
   * It was at `sequence` or before then; these sequences never decrease.
   */
  readonly seen?: Readonly<Record<string, number>>
}

/** Number of standings that are kept; each needs about 300 bytes. */
const keptMax = 2_000
/** Number of replicas whose last report is kept; each needs about 300 bytes. */
const reportsMax = 10_000

/**
 * The current sequences of replicas, and what each has of the others' changes. The latter costs a replica some scans,
 * and a slightly old answer is harmless (a position then names fewer other replicas). It is therefore requested at most
 * once per `standingRefreshMs`, however many feeds begin, and once per `followRefreshMs` for feeds that continue.
 */
export class ReplicaStandings {
  readonly #clock: Clock
  readonly #options: StandingOptions
  readonly #kept = new Map<string, Standing>()
  /** The history and sequence that each replica reported last. */
  readonly #reports = new Map<string, ReplicaReport>()
  readonly #reporting = new Map<string, Promise<void>>()
  readonly #asking = new Map<string, Promise<ReachedStanding>>()

  constructor(clock: Clock, options: StandingOptions) {
    this.#clock = clock
    this.#options = options
  }

  /**
   * Returns the standing of a replica and its sequence at this moment. The information about other replicas is up to
   * `standingRefreshMs` old.
   * @throws ReplicaError
   */
  async now(peer: Peer, place: ShardPlace): Promise<ReachedStanding> {
    const kept = this.#young(peer, place, this.#options.standingRefreshMs)
    if (kept === undefined) return this.#asked(peer, place)
    const call = { timeoutMs: this.#options.readTimeoutMs }
    const { history, sequence } = await newestPosition(peer.replica, call)
    return history === kept.source.history ? { standing: kept, sequence } : this.#asked(peer, place)
  }

  /**
   * Returns a standing that is recent enough for a feed that continues.
   * @throws ReplicaError
   */
  async recent(peer: Peer, place: ShardPlace): Promise<ReachedStanding> {
    const kept = this.#young(peer, place, this.#options.followRefreshMs)
    return kept === undefined ? this.#asked(peer, place) : { standing: kept, sequence: kept.source.sequence }
  }

  /** Records that a replica reported its history and sequence and, with `seen`, what it has of the others' changes. */
  reported(node: string, shard: ShardId, report: ReplicaCheckpoint & Pick<ReplicaReport, 'seen'>): void {
    const { history, sequence, seen } = report
    const key = keyOf(node, shard)
    const before = this.#reports.get(key)
    const known = seen ?? (before?.history === history ? before.seen : undefined)
    this.#reports.delete(key)
    const at = this.#clock.monotonic()
    this.#reports.set(key, { history, sequence, at, ...(known === undefined ? {} : { seen: known }) })
    if (this.#reports.size > reportsMax) this.#reports.delete(this.#reports.keys().next().value!)
  }

  /** Returns true when the replica's last report is younger than `standingRefreshMs`. */
  hasReported(node: string, shard: ShardId): boolean {
    const report = this.#reports.get(keyOf(node, shard))
    return report !== undefined && this.#clock.monotonic() - report.at < this.#options.standingRefreshMs
  }

  /** Keeps a replica's report as its standing. */
  keep(peer: Peer, place: ShardPlace, { history, sequence, seen }: ReplicaInfo): Standing {
    const key = keyOf(peer.node, place.id)
    this.reported(peer.node, place.id, { history, sequence, seen })
    const source = { node: peer.node, history, sequence, seen }
    const standing = this.completed({ peer, source, at: this.#clock.monotonic() }, place)
    this.#kept.delete(key)
    this.#kept.set(key, standing)
    if (this.#kept.size > keptMax) this.#kept.delete(this.#kept.keys().next().value!)
    return standing
  }

  /**
   * Asks a replica what it has of the others' changes, unless it was asked less than `standingRefreshMs` ago.
   * @throws ReplicaError, also after `stateTimeoutMs`
   */
  async ask(peer: Peer, place: ShardPlace): Promise<void> {
    const { standingRefreshMs, stateTimeoutMs } = this.#options
    if (this.#young(peer, place, standingRefreshMs) === undefined) await this.#asked(peer, place, stateTimeoutMs)
  }

  /**
   * Returns the nodes whose replicas are not known to have all changes of this replica, provided that this replica has
   * all changes of theirs. Only these replicas then prevent the list of all replicas.
   */
  unproven({ source }: Standing, { id, record }: ShardPlace): readonly string[] {
    const nodes: string[] = []
    for (const { node } of activeReplicas(record)) {
      if (node === source.node) continue
      const report = this.#reports.get(keyOf(node, id))
      if (report === undefined || (source.seen[report.history] ?? 0) < report.sequence) return []
      if ((report.seen?.[source.history] ?? 0) < source.sequence) nodes.push(node)
    }
    return nodes
  }

  /**
   * Adds the list of all replicas to the standing, if each of them has reported by now and has all changes of the
   * others.
   */
  completed(standing: Standing, place: ShardPlace): Standing {
    const all = this.#everyReplica(place, standing.source)
    if (all === undefined) return standing
    const completed = { ...standing, source: { ...standing.source, all } }
    const key = keyOf(standing.peer.node, place.id)
    if (this.#kept.get(key) === standing) this.#kept.set(key, completed)
    return completed
  }

  /**
   * Resolves when the replica has reported its history or has failed to. Callers at the same time share one question.
   */
  reporting(node: string, shard: ShardId, ask: () => Promise<void>): Promise<void> {
    const key = keyOf(node, shard)
    const known = this.#reporting.get(key)
    if (known !== undefined) return known
    const reporting = ask().finally(() => { this.#reporting.delete(key) })
    this.#reporting.set(key, reporting)
    return reporting
  }

  #young(peer: Peer, place: ShardPlace, msMax: number): Standing | undefined {
    const kept = this.#kept.get(keyOf(peer.node, place.id))
    return kept !== undefined && this.#clock.monotonic() - kept.at < msMax ? kept : undefined
  }

  /**
   * Returns undefined when a replica has not reported, when this replica is not known to have all its changes, or the
   * reverse.
   */
  #everyReplica({ id, record }: ShardPlace, source: ReplicaSource): readonly ReplicaPlace[] | undefined {
    const all: ReplicaPlace[] = []
    for (const { node } of activeReplicas(record)) {
      const report = this.#reports.get(keyOf(node, id))
      if (report === undefined) return undefined
      const { history } = report
      const sequence = node === source.node ? source.sequence : source.seen[history] ?? 0
      const hasAll = node === source.node || (report.seen?.[source.history] ?? 0) >= source.sequence
      if (!hasAll || (node !== source.node && sequence < report.sequence)) return undefined
      all.push({ node, history, sequence })
    }
    return all.sort((a, b) => a.node < b.node ? -1 : 1)
  }

  /** Asks the replica once for all callers that ask at the same time. */
  #asked(peer: Peer, place: ShardPlace, timeoutMs = this.#options.readTimeoutMs): Promise<ReachedStanding> {
    const key = keyOf(peer.node, place.id)
    const asking = this.#asking.get(key)
    if (asking !== undefined) return asking
    const asked = peer.replica.upkeep.replicaInfo({ timeoutMs })
      .then(info => ({ standing: this.keep(peer, place, info), sequence: info.sequence }))
      .finally(() => { this.#asking.delete(key) })
    this.#asking.set(key, asked)
    return asked
  }
}

function keyOf(node: string, shard: ShardId): string {
  return `${node} ${shardKey(shard)}`
}
