import type { AntiEntropyOptions } from './anti-entropy-options.ts'

interface ShardWrites {
  /** Number of changes of this shard since the node started. */
  commits: number
  /** Monotonic time in milliseconds at which the changes are pushed; null when there are no new changes. */
  due: number | null
  /** Upper bound of `due`. */
  dueMax: number
}

interface PairProgress {
  /** The value of `commits` up to which the peer is known to have the changes; -1 when unknown. */
  covered: number
  /** Monotonic time in milliseconds of the first change that the peer is not known to have; null: there is none. */
  dirtySince: number | null
  /** Number of failed pushes since the last successful one. */
  failures: number
  /** The value of `commits` at the last comparison by digests with the peer; -1 when there was none since the start. */
  compared: number
}

type PushTimes = Pick<AntiEntropyOptions, 'pushQuietMs' | 'pushDelayMaxMs' | 'pushMissedMs' | 'periodicPassMs'>

/** The state at the start of a pass, to be passed on when it succeeds. */
export interface PushStart {
  readonly commits: number
  /** Monotonic time in milliseconds. */
  readonly at: number
  /** Identifies the shard until it is forgotten. */
  readonly writes: object
}

/**
 * Decides which shards to push at which time. It has no timers: the caller reports writes and takes the due shards. All
 * times are in milliseconds, and `now` is monotonic.
 * Quorum writes already reach every replica, so a push mostly confirms this. Waiting for a quiet moment combines the
 * confirmations of many writes into one.
 */
export class PushSchedule {
  readonly #options: PushTimes
  readonly #shards = new Map<string, ShardWrites>()
  readonly #pairs = new Map<string, Map<string, PairProgress>>()
  readonly #waiting = new Set<string>()

  constructor(options: PushTimes) {
    this.#options = options
  }

  /** Records that a change became durable on this node. */
  committed(key: string, peers: readonly string[], now: number): void {
    const writes = this.#writes(key)
    writes.commits++
    for (const peer of peers) this.#pair(key, peer).dirtySince ??= now
    if (writes.due === null) writes.dueMax = now + this.#options.pushDelayMaxMs
    writes.due = Math.min(now + this.#options.pushQuietMs, writes.dueMax)
    this.#waiting.add(key)
  }

  /** Records that the peer lacks a change. */
  missed(key: string, peer: string, now: number): void {
    const pair = this.#pair(key, peer)
    pair.covered = -1
    pair.dirtySince ??= now
    this.pushWithin(key, this.#options.pushMissedMs, now)
  }

  /** Records a failed push. The next one follows soon, and after repeated failures at growing intervals. */
  failed(key: string, peer: string, now: number): void {
    const pair = this.#pair(key, peer)
    const { pushMissedMs, periodicPassMs } = this.#options
    this.pushWithin(key, Math.min(pushMissedMs * 2 ** pair.failures, periodicPassMs), now)
    pair.failures++
  }

  /** Has the shard pushed at the latest `ms` milliseconds after `now`. */
  pushWithin(key: string, ms: number, now: number): void {
    const writes = this.#writes(key)
    if (writes.due === null) writes.dueMax = now + this.#options.pushDelayMaxMs
    writes.due = Math.min(writes.due ?? Infinity, now + ms)
    this.#waiting.add(key)
  }

  get anyWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Returns the shards to push now. Each is returned once. */
  takeDue(now: number): string[] {
    const due: string[] = []
    for (const key of this.#waiting) {
      const writes = this.#shards.get(key)!
      if (writes.due! > now) continue
      writes.due = null
      this.#waiting.delete(key)
      due.push(key)
    }
    return due
  }

  /** Returns true when the peer is known to have every change of the shard. */
  isCovered(key: string, peer: string): boolean {
    return this.#pair(key, peer).covered >= this.#writes(key).commits
  }

  begin(key: string, now: number): PushStart {
    const writes = this.#writes(key)
    return { commits: writes.commits, at: now, writes }
  }

  /** Returns true when the shard has not changed since its last comparison with the peer. */
  isCompared(key: string, peer: string): boolean {
    return this.#pair(key, peer).compared >= this.#writes(key).commits
  }

  /** Records that the comparison that began at `start` made both replicas equal. */
  compared(key: string, peer: string, start: PushStart): void {
    if (this.#shards.get(key) !== start.writes) return
    const pair = this.#pair(key, peer)
    pair.compared = Math.max(pair.compared, start.commits)
  }

  /** Records that the pass that began at `start` brought the peer every change. */
  confirm(key: string, peer: string, start: PushStart): void {
    if (this.#shards.get(key) !== start.writes) return
    const pair = this.#pair(key, peer)
    pair.covered = Math.max(pair.covered, start.commits)
    pair.failures = 0
    pair.dirtySince = this.#writes(key).commits > start.commits ? start.at : null
  }

  /** Call this when the peer's link closed. The peer may return with another disk. */
  forgetPeer(peer: string): void {
    for (const pair of this.#pairs.get(peer)?.values() ?? []) pair.covered = -1
  }

  /** Call this when other nodes have the replicas of the shard. The progress of those that have none is forgotten. */
  keepPeers(key: string, peers: readonly string[]): void {
    for (const [peer, pairs] of this.#pairs) if (!peers.includes(peer)) pairs.delete(key)
  }

  forgetShard(key: string): void {
    this.#shards.delete(key)
    this.#waiting.delete(key)
    for (const pairs of this.#pairs.values()) pairs.delete(key)
  }

  /** Returns for each peer the age in milliseconds of the oldest change that it is not known to have. */
  lag(now: number): Map<string, number> {
    const lag = new Map<string, number>()
    for (const [peer, pairs] of this.#pairs) {
      let oldest = now
      for (const { dirtySince } of pairs.values()) if (dirtySince !== null && dirtySince < oldest) oldest = dirtySince
      lag.set(peer, now - oldest)
    }
    return lag
  }

  #writes(key: string): ShardWrites {
    let writes = this.#shards.get(key)
    if (writes === undefined) this.#shards.set(key, writes = { commits: 0, due: null, dueMax: 0 })
    return writes
  }

  #pair(key: string, peer: string): PairProgress {
    let pairs = this.#pairs.get(peer)
    if (pairs === undefined) this.#pairs.set(peer, pairs = new Map())
    let pair = pairs.get(key)
    if (pair === undefined) pairs.set(key, pair = { covered: -1, dirtySince: null, failures: 0, compared: -1 })
    return pair
  }
}
