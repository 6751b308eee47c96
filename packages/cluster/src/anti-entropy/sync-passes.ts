import type { CallContext, ShardReplica } from '@sectional/core'
import { RepeatedLines } from '@sectional/runtime'
import type { Runtime } from '@sectional/runtime'
import type { ReplicaDirectory } from '../coordinator/replica-directory.ts'
import { asReplicaError } from '../coordinator/replica-failures.ts'
import type { AntiEntropyMetrics } from './anti-entropy-metrics.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'
import { compareDigests } from './digest-compare.ts'
import type { LocalReplicas } from './local-replicas.ts'
import type { PushSchedule } from './push-schedule.ts'
import { syncReplica } from './replica-sync.ts'
import type { SyncJob } from './sync-queue.ts'

export interface SyncPassesParts {
  readonly runtime: Runtime
  readonly replicas: ReplicaDirectory
  readonly local: LocalReplicas
  readonly metrics: AntiEntropyMetrics
  readonly schedule: PushSchedule
  readonly options: AntiEntropyOptions
  /** Aborts every pass. */
  readonly signal: AbortSignal
}

/** Does what the queue hands out. Failures are logged and counted; whoever asked for the pass tries again. */
export class SyncPasses {
  readonly #parts: SyncPassesParts
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
      await this.#pass(job, own, replicas.replica(peer, shard.id), call)
      metrics.passed(kind, 'done')
      return true
    } catch (error) {
      metrics.passed(kind, 'failed')
      const { code, message } = asReplicaError(error)
      const fields = { kind, db: shard.db.name, shard: shard.key, peer, code, error: message }
      if (code === 'protocol' || code === 'storage' || code === 'missing_blob') this.#repeated.warn(`${code} ${peer}`, fields, 'anti-entropy pass failed; it is tried again')
      else runtime.log.debug(fields, 'anti-entropy pass ended early; it is tried again')
      return false
    }
  }

  async #pass({ kind, shard, peer, onBehind }: SyncJob, own: ShardReplica, other: ShardReplica, call: CallContext): Promise<void> {
    const { runtime, metrics, schedule, options } = this.#parts
    const { revsLimit } = shard.db
    if (kind === 'compare') {
      const { documents } = await compareDigests({ first: own, second: other, revsLimit, buckets: options.digestBuckets, call })
      metrics.found(documents)
      if (documents > 0) {
        const short = revsLimit < options.shortHistoryRevs
        const text = short ? 'replicas differed in branches whose ancestors _revs_limit had cut off; they are equal again' : 'replicas differed although checkpoints said otherwise; they are equal again'
        runtime.log[short ? 'info' : 'warn']({ db: shard.db.name, shard: shard.key, peer, documents }, text)
      }
      return
    }
    const [source, target] = kind === 'push' ? [own, other] : [other, own]
    const start = schedule.begin(shard.key, runtime.clock.monotonic())
    const { stored } = await syncReplica({ source, target, revsLimit, options, call, ...(onBehind && { onBehind }) })
    metrics.stored(kind, stored)
    if (kind === 'push') schedule.confirm(shard.key, peer, start)
  }
}
