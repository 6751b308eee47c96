import type { CallContext, ShardReplica } from '@sectional/core'
import { RepeatedLines } from '@sectional/runtime'
import type { Runtime } from '@sectional/runtime'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import type { AntiEntropyMetrics } from './anti-entropy-metrics.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'
import { compareDigests } from './digest-compare.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import type { PushSchedule } from './push-schedule.ts'
import type { Refills } from './refills.ts'
import { ReplicaDoubts } from './replica-doubts.ts'
import { syncReplica } from './replica-sync.ts'
import type { SyncJob } from './sync-queue.ts'

export interface SyncPassesParts {
  readonly runtime: Runtime
  readonly replicas: ReplicaDirectory
  readonly local: LocalReplicas
  readonly metrics: AntiEntropyMetrics
  readonly schedule: PushSchedule
  readonly refills: Refills
  readonly options: AntiEntropyOptions
  /** Aborts every pass. */
  readonly signal: AbortSignal
}

/**
 * Runs the passes that the queue starts. Failures are logged and counted; the component that requested the pass tries
 * again.
 */
export class SyncPasses {
  readonly #parts: SyncPassesParts
  readonly #doubts = new ReplicaDoubts()
  readonly #repeated: RepeatedLines

  constructor(parts: SyncPassesParts) {
    this.#parts = parts
    this.#repeated = new RepeatedLines(parts.runtime.log, parts.runtime.clock)
  }

  async run(job: SyncJob): Promise<boolean> {
    const { local, replicas, metrics, runtime, signal, options } = this.#parts
    const { kind, shard, peer } = job
    const own = local.replica(shard.id)
    if (own === undefined || !replicas.isConnected(peer)) {
      metrics.passed(kind, 'skipped')
      return false
    }
    const call: CallContext = { timeoutMs: options.callTimeoutMs, signal, requestId: `anti-entropy-${kind}` }
    try {
      const settled = await this.#pass(job, own, replicas.replica(peer, shard.id), call)
      metrics.passed(kind, settled ? 'done' : 'skipped')
      return settled
    } catch (error) {
      metrics.passed(kind, 'failed')
      const { code, message } = asReplicaError(error)
      const fields = { kind, db: shard.db.name, shard: shard.key, peer, code, error: message }
      if (code === 'protocol' || code === 'storage' || code === 'missing_blob') {
        this.#repeated.warn(`${code} ${peer}`, fields, 'anti-entropy pass failed; it will be tried again')
      } else {
        runtime.log.debug(fields, 'anti-entropy pass ended early; it will be tried again')
      }
      return false
    }
  }

  /** Removes the records about shards that this node no longer hosts. */
  forgetShards(isKnown: (key: string) => boolean): void {
    this.#doubts.forget(pair => isKnown(pair.slice(0, pair.indexOf(' '))))
  }

  /** Resolves to false when a check must be repeated. */
  async #pass(job: SyncJob, own: ShardReplica, other: ShardReplica, call: CallContext): Promise<boolean> {
    if (job.kind === 'check') return await this.#check(job, own, other, call)
    if (job.kind === 'compare') await this.#compare(job, own, other, call)
    else await this.#sync(job, own, other, call)
    return true
  }

  async #check(job: SyncJob, own: ShardReplica, other: ShardReplica, call: CallContext): Promise<boolean> {
    const { clock } = this.#parts.runtime
    const pair = `${job.shard.key} ${job.peer}`
    const [one, two] = await Promise.all([own.upkeep.replicaInfo(call), other.upkeep.replicaInfo(call)])
    const began = clock.monotonic()
    const state = this.#doubts.stateOf(pair, one, two, began)
    if (state !== 'doubtful') return state === 'equal'
    await this.#compare(job, own, other, call)
    const now = clock.monotonic()
    this.#doubts.compared(pair, one, two, now - began, now)
    return true
  }

  async #compare({ shard, peer }: SyncJob, own: ShardReplica, other: ShardReplica, call: CallContext): Promise<void> {
    const { runtime, metrics, options } = this.#parts
    const { revsLimit } = shard.db
    const comparison = { first: own, second: other, revsLimit, buckets: options.digestBuckets, call }
    const { documents } = await compareDigests(comparison)
    metrics.found(documents)
    if (documents === 0) return
    const short = revsLimit < options.shortHistoryRevs
    const text = short
      ? 'replicas differed in branches whose ancestors _revs_limit had cut off; they are equal again'
      : 'replicas differed although checkpoints said otherwise; they are equal again'
    runtime.log[short ? 'info' : 'warn']({ db: shard.db.name, shard: shard.key, peer, documents }, text)
  }

  async #sync(
    { kind, shard, peer, onBehind }: SyncJob, own: ShardReplica, other: ShardReplica, call: CallContext,
  ): Promise<void> {
    const { runtime, metrics, schedule, options, refills } = this.#parts
    const [source, target] = kind === 'push' ? [own, other] : [other, own]
    const start = schedule.begin(shard.key, runtime.clock.monotonic())
    const onProgress = kind === 'pull' && shard.filling
      ? (done: number, total: number) => refills.progressed(shard, peer, done, total)
      : undefined
    try {
      const { stored } = await syncReplica({
        source, target, revsLimit: shard.db.revsLimit, options, call,
        ...(onBehind && { onBehind }), ...(onProgress && { onProgress }),
      })
      metrics.stored(kind, stored)
    } finally {
      if (onProgress !== undefined) refills.ended(shard, peer)
    }
    if (kind === 'push') schedule.confirm(shard.key, peer, start)
  }
}
