import { RepeatedLines } from '@sectional/runtime'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope, RepairRequests } from '../shard-calls/coordinator-scope.ts'
import { convergeDocument } from './document-convergence.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

interface RepairJob { readonly db: DatabaseRecord; readonly place: ShardPlace; readonly id: string }

/** The request id of repairs, for the log. */
const repairRequestId = 'read-repair'

/**
 * Repairs documents whose replicas differed in a read. A few repairs run at a time, and a document that already waits
 * is not queued again. While it is being repaired, it is queued once more, because the repair may have read the
 * replicas before they differed. When the queue is full, the repair is left to anti-entropy.
 */
export class ReadRepair implements RepairRequests {
  readonly #scope: () => CoordinatorScope
  readonly #queue = new Map<string, RepairJob>()
  readonly #runningKeys = new Set<string>()
  #repeated: RepeatedLines | undefined
  #stopped = false

  constructor(scope: () => CoordinatorScope) {
    this.#scope = scope
  }

  request(db: DatabaseRecord, place: ShardPlace, id: string): void {
    const scope = this.#scope()
    const key = `${db.incarnation}/${id}`
    if (this.#stopped || this.#queue.has(key)) return
    if (this.#queue.size >= scope.options.repairsQueuedMax) return scope.metrics.repair('dropped')
    this.#queue.set(key, { db, place, id })
    this.#startNext()
  }

  /** Drops the waiting repairs. The running ones are tracked by the background work of the scope. */
  stop(): void {
    this.#stopped = true
    this.#queue.clear()
  }

  #startNext(): void {
    const scope = this.#scope()
    for (const [key, job] of this.#queue) {
      if (this.#runningKeys.size >= scope.options.repairsRunningMax) return
      if (this.#runningKeys.has(key)) continue
      this.#queue.delete(key)
      this.#runningKeys.add(key)
      scope.background.track(this.#run(key, job))
    }
  }

  async #run(key: string, { db, place, id }: RepairJob): Promise<void> {
    const { metrics, runtime } = this.#scope()
    try {
      const { repaired } = await convergeDocument(this.#scope(), db, place, id, repairRequestId)
      metrics.repair(repaired > 0 ? 'repaired' : 'unneeded')
    } catch (error) {
      metrics.repair('failed')
      const { code, message } = asReplicaError(error)
      this.#repeated ??= new RepeatedLines(runtime.log, runtime.clock)
      this.#repeated.warn(
        code, { db: db.name, code, error: message }, 'read repair failed; anti-entropy will try again',
      )
    } finally {
      this.#runningKeys.delete(key)
      this.#startNext()
    }
  }
}
