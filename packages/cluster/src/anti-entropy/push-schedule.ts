import type { AntiEntropyOptions } from './anti-entropy-options.ts'

interface ShardWrites {
  /** Changes of this shard since the node started. */
  commits: number
  /** When its changes are to be pushed; null: nothing new. */
  due: number | null
  /** The latest that `due` may become. */
  dueMax: number
}

interface PairProgress {
  /** `commits` of the shard that the peer is known to have; -1: not known. */
  covered: number
  /** Monotonic time of the first change that the peer is not known to have. */
  dirtySince: number | null
  /** Pushes that failed since the last one that did not. */
  failures: number
  /** `commits` of the shard when it was last compared with the peer by digests; -1: not since the start. */
  compared: number
}

type PushTimes = Pick<AntiEntropyOptions, 'pushQuietMs' | 'pushDelayMaxMs' | 'pushMissedMs' | 'slowClockMs'>

/** Where a pass began, to be confirmed when it succeeds. */
export interface PushStart { readonly commits: number; readonly at: number }

/**
 * Which shards to push when, without timers: writes come in, due shards come out. Quorum writes reach every
 * replica by themselves, so a push mostly confirms; waiting for a quiet moment makes one cheap confirmation out
 * of many writes.
 */
export class PushSchedule {
  readonly #options: PushTimes
  readonly #shards = new Map<string, ShardWrites>()
  readonly #pairs = new Map<string, Map<string, PairProgress>>()
  readonly #waiting = new Set<string>()

  constructor(options: PushTimes) {
    this.#options = options
  }

  /** A change became durable here. */
  committed(key: string, peers: readonly string[], now: number): void {
    const writes = this.#writes(key)
    writes.commits++
    for (const peer of peers) this.#pair(key, peer).dirtySince ??= now
    if (writes.due === null) writes.dueMax = now + this.#options.pushDelayMaxMs
    writes.due = Math.min(now + this.#options.pushQuietMs, writes.dueMax)
    this.#waiting.add(key)
  }

  /** The peer is known to lack something. */
  missed(key: string, peer: string, now: number): void {
    const pair = this.#pair(key, peer)
    pair.covered = -1
    pair.dirtySince ??= now
    this.pushWithin(key, this.#options.pushMissedMs, now)
  }

  /** A push did not get through: again soon, and ever more rarely while it goes on failing. */
  failed(key: string, peer: string, now: number): void {
    const pair = this.#pair(key, peer)
    const { pushMissedMs, slowClockMs } = this.#options
    this.pushWithin(key, Math.min(pushMissedMs * 2 ** pair.failures, slowClockMs), now)
    pair.failures++
  }

  pushWithin(key: string, ms: number, now: number): void {
    const writes = this.#writes(key)
    if (writes.due === null) writes.dueMax = now + this.#options.pushDelayMaxMs
    writes.due = Math.min(writes.due ?? Infinity, now + ms)
    this.#waiting.add(key)
  }

  get anyWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Shards to push now, each given out once. */
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

  /** True when the peer is known to have every change of the shard. */
  isCovered(key: string, peer: string): boolean {
    return this.#pair(key, peer).covered >= this.#writes(key).commits
  }

  begin(key: string, now: number): PushStart {
    return { commits: this.#writes(key).commits, at: now }
  }

  /** Changes of the shard that it had when it was last compared with the peer, or more. */
  isCompared(key: string, peer: string): boolean {
    return this.#pair(key, peer).compared >= this.#writes(key).commits
  }

  /** The comparison that began there has made both equal. */
  compared(key: string, peer: string, start: PushStart): void {
    const pair = this.#pair(key, peer)
    pair.compared = Math.max(pair.compared, start.commits)
  }

  /** The pass that began there has brought the peer everything. */
  confirm(key: string, peer: string, start: PushStart): void {
    const pair = this.#pair(key, peer)
    pair.covered = Math.max(pair.covered, start.commits)
    pair.failures = 0
    pair.dirtySince = this.#writes(key).commits > start.commits ? start.at : null
  }

  /** The peer's link is gone: it may come back with another disk. */
  forgetPeer(peer: string): void {
    for (const pair of this.#pairs.get(peer)?.values() ?? []) pair.covered = -1
  }

  forgetShard(key: string): void {
    this.#shards.delete(key)
    this.#waiting.delete(key)
    for (const pairs of this.#pairs.values()) pairs.delete(key)
  }

  /** For each peer the age of the oldest change that it is not known to have, milliseconds. */
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
