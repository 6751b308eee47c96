import { RepeatedLines } from '@sectional/runtime'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope, RepairRequests } from '../shard-calls/coordinator-scope.ts'
import { convergeDocument } from './document-convergence.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

interface RepairJob { readonly db: DatabaseRecord; readonly place: ShardPlace; readonly id: string }

/** What repairs log as their request id. */
const repairRequestId = 'read-repair'

/**
 * Makes the replicas of documents equal whose answers to a read differed: a few at a time, each document once.
 * What finds no room is left to anti-entropy.
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
    if (this.#stopped || this.#queue.has(key) || this.#runningKeys.has(key)) return
    if (this.#queue.size >= scope.options.repairsQueuedMax) return scope.metrics.repair('dropped')
    this.#queue.set(key, { db, place, id })
    this.#startNext()
  }

  /** Forgets what waits; what runs is tracked by the scope's background work. */
  stop(): void {
    this.#stopped = true
    this.#queue.clear()
  }

  #startNext(): void {
    const scope = this.#scope()
    while (this.#runningKeys.size < scope.options.repairsRunningMax) {
      const next = this.#queue.entries().next()
      if (next.done) return
      const [key, job] = next.value
      this.#queue.delete(key)
      this.#runningKeys.add(key)
      scope.background.track(this.#run(key, job))
    }
  }

  async #run(key: string, { db, place, id }: RepairJob): Promise<void> {
    const { metrics, runtime } = this.#scope()
    try {
      const repaired = await convergeDocument(this.#scope(), db, place, id, repairRequestId)
      metrics.repair(repaired > 0 ? 'repaired' : 'unneeded')
    } catch (error) {
      metrics.repair('failed')
      const { code, message } = asReplicaError(error)
      this.#repeated ??= new RepeatedLines(runtime.log, runtime.clock)
      this.#repeated.warn(code, { db: db.name, code, error: message }, 'read repair failed; anti-entropy will try again')
    } finally {
      this.#runningKeys.delete(key)
      this.#startNext()
    }
  }
}
