/**
 * Which local replicas must not decide edits by themselves yet, because they may have missed some: all of them
 * after a start, those that were cut off from a majority of their shard's replicas, and those that did not store
 * revisions which others may have confirmed, for whatever reason (a full disk, a timeout, overload). A replica that stayed
 * with the majority goes on deciding when the minority returns: it has missed nothing that was acknowledged.
 *
 * A replica has caught up when one pass from every reachable active replica is done and a majority was
 * reachable. One that is being filled, or whose process did not end in order, is compared with each of them by digests
 * as well: checkpoints may cover what its disk has lost. To decline is soft: coordinators then look at the other replicas before it decides.
 */
import type { Clock, Log } from '@sectional/runtime'
import { majority } from '../quorum/majority.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'
import type { HostedShard } from './hosted-shards.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import type { SyncQueue } from './sync-queue.ts'

export interface CatchUpParts {
  readonly clock: Clock
  readonly log: Log
  readonly options: Pick<AntiEntropyOptions, 'catchUpMaxMs'>
  readonly local: LocalReplicas
  readonly queue: SyncQueue
  readonly isConnected: (node: string) => boolean
  /** The shard as the cluster state has it now. */
  readonly current: (key: string) => HostedShard | undefined
  /** The replica is about to be rebuilt, so it must not count as filled. */
  readonly isDamaged: (key: string) => boolean
  /** A filling replica has what its active peers had. Rejects when the cluster could not be told. */
  readonly reportFilled: (shard: HostedShard) => Promise<void>
  /** Something failed: `tick` is to be called before long. */
  readonly tryAgain: () => void
}

interface ShardProgress {
  /** Peers that are being pulled from. */
  readonly bringing: Set<string>
  /** Peers that were pulled from; null: the replica is up to date, and its progress is forgotten. */
  pulled: Set<string> | null
  /** Monotonic time at which the replica began to decline; null: it does not. */
  decliningSince: number | null
}

function newProgress(decliningSince: number | null): ShardProgress {
  return { bringing: new Set(), pulled: new Set(), decliningSince }
}

export class CatchUp {
  readonly #parts: CatchUpParts
  /** Of the replicas that are not known to be up to date: mostly few. */
  readonly #progress = new Map<string, ShardProgress>()
  /** Some replica did not store something since the last tick. */
  #missed = false

  constructor(parts: CatchUpParts) {
    this.#parts = parts
  }

  /** Local replicas that decline to decide. */
  get declining(): number {
    return [...this.#progress.values()].filter(progress => progress.decliningSince !== null).length
  }

  /** After a start: nobody knows what was missed. The replica declines already. */
  started(shard: HostedShard): void {
    this.#behind(shard)
    if (shard.activePeers.length === 0) this.#parts.local.setCatchingUp(shard.id, false)
    else this.#decline(shard)
    this.advance(shard)
  }

  /** A replica that appeared while the node runs: empty like its peers as a rule, so it declines only once it turns out to lag. */
  appeared(shard: HostedShard): void {
    this.#behind(shard)
    this.advance(shard)
  }

  /** The replica's place in its shard changed: an active one may have become a filling one, or peers were added. */
  changed(shard: HostedShard): void {
    if (shard.filling) this.#behind(shard)
    this.advance(shard)
  }

  /** The replica has begun another life, and lacks something. */
  rebuilt(shard: HostedShard): void {
    this.#progress.set(shard.key, newProgress(null))
    this.#decline(shard)
    this.advance(shard)
  }

  /**
   * The replica did not store something that its peers may have. Passes that have begun may be too early to bring it,
   * so all are wanted anew, after a moment: the disk may be full still.
   */
  missed(shard: HostedShard): void {
    this.#progress.set(shard.key, newProgress(this.#progress.get(shard.key)?.decliningSince ?? null))
    this.#missed = true
    this.#decline(shard)
    this.#parts.tryAgain()
  }

  disappeared(key: string): void {
    this.#progress.delete(key)
  }

  peerUp(shard: HostedShard, peer: string): void {
    if (!shard.activePeers.includes(peer)) return
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null) return
    progress.pulled.delete(peer)
    // What is under way may have begun on the link before.
    progress.bringing.delete(peer)
    this.#decline(shard)
    this.advance(shard)
  }

  peerDown(shard: HostedShard, peer: string): void {
    if (!shard.activePeers.includes(peer)) return
    this.#progress.get(shard.key)?.pulled?.delete(peer)
    if (!this.#reachesMajority(shard)) this.#behind(shard)
    else this.advance(shard)
  }

  /** Looks again at everything that is not up to date: failed pulls, missed deadlines, reports that did not arrive. */
  tick(): void {
    const now = this.#parts.clock.monotonic()
    // While the disk refuses what comes, one replica at a time tries to catch up, and none gives up.
    const refusing = this.#missed
    this.#missed = false
    for (const [key, { pulled, decliningSince }] of this.#progress) {
      const shard = this.#parts.current(key)
      if (shard === undefined || pulled === null) continue
      if (refusing) {
        this.#parts.tryAgain()
        return this.advance(shard)
      }
      if (decliningSince !== null && now - decliningSince >= this.#parts.options.catchUpMaxMs) {
        this.#parts.log.warn({ db: shard.db.name, shard: key, waitedMs: now - decliningSince }, 'a replica decides edits again although it could not catch up')
        this.#accept(shard)
      }
      this.advance(shard)
    }
  }

  /** Asks for the pulls that are still needed, or ends the catch-up. */
  advance(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null || (shard.filling && this.#parts.isDamaged(shard.key))) return
    const { pulled, bringing } = progress
    const reachable = shard.activePeers.filter(peer => this.#parts.isConnected(peer))
    const wanted = reachable.filter(peer => !pulled.has(peer))
    if (wanted.length === 0 && this.#reachesMajority(shard)) return this.#finish(shard, progress)
    for (const peer of wanted) {
      if (bringing.has(peer)) continue
      bringing.add(peer)
      void this.#bring(shard, peer).then(succeeded => {
        bringing.delete(peer)
        if (!succeeded) return this.#parts.tryAgain()
        if (progress.pulled !== pulled || !this.#parts.isConnected(peer)) return
        pulled.add(peer)
        this.advance(this.#parts.current(shard.key) ?? shard)
      })
    }
  }

  /** Resolves with false when something of it failed. */
  async #bring(shard: HostedShard, peer: string): Promise<boolean> {
    const { queue, local } = this.#parts
    const onBehind = (): void => { this.#decline(shard) }
    if (!await queue.add({ kind: 'pull', shard, peer, onBehind }, true)) return false
    if (!shard.filling && !local.isUncompared(shard.id)) return true
    return await queue.add({ kind: 'compare', shard, peer }, true)
  }

  #finish(shard: HostedShard, progress: ShardProgress): void {
    progress.pulled = null
    this.#parts.local.compared(shard.id)
    this.#accept(shard)
    this.#progress.delete(shard.key)
    if (!shard.filling) return
    this.#parts.reportFilled(shard).catch((error: unknown) => {
      this.#parts.log.debug({ db: shard.db.name, shard: shard.key, error: String(error) }, 'the cluster could not be told that a replica is filled; this is tried again')
      if (this.#parts.current(shard.key) !== undefined) this.#behind(shard)
      this.#parts.tryAgain()
    })
  }

  #behind({ key }: HostedShard): void {
    if (!this.#progress.has(key)) this.#progress.set(key, newProgress(null))
  }

  #decline(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null || progress.decliningSince !== null || shard.activePeers.length === 0) return
    progress.decliningSince = this.#parts.clock.monotonic()
    this.#parts.local.setCatchingUp(shard.id, true)
  }

  #accept(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.decliningSince === null) return
    progress.decliningSince = null
    this.#parts.local.setCatchingUp(shard.id, false)
  }

  #reachesMajority({ activePeers, filling }: HostedShard): boolean {
    const active = activePeers.length + (filling ? 0 : 1)
    const reached = activePeers.filter(peer => this.#parts.isConnected(peer)).length + (filling ? 0 : 1)
    return reached >= majority(active)
  }
}
