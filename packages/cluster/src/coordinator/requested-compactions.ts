import type { DatabaseRecord } from '../control/cluster-state.ts'
import { onEveryReplica } from '../shard-calls/every-replica.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'

/** Maximum number of databases whose requests are remembered. */
const databasesMax = 1000

/**
 * The compactions that clients of this node have requested. While one may be running, `compact_running` concerns every
 * replica, so that a client that waits for its end finds no replaced body on a slower replica afterwards.
 */
export class RequestedCompactions {
  /** The newest request of each database, by incarnation. */
  readonly #requests = new Map<string, symbol>()

  requested({ incarnation }: DatabaseRecord): void {
    this.#requests.delete(incarnation)
    this.#requests.set(incarnation, Symbol(incarnation))
    const [oldest] = this.#requests.keys()
    if (this.#requests.size > databasesMax) this.#requests.delete(oldest!)
  }

  /** Returns whether a replica that answers is still being compacted since a request of this node. Never rejects. */
  async isRunning(
    scope: Pick<CoordinatorScope, 'access' | 'options'>, db: DatabaseRecord, { requestId }: OperationContext,
  ): Promise<boolean> {
    const request = this.#requests.get(db.incarnation)
    if (request === undefined) return false
    const call = { requestId, timeoutMs: scope.options.stateTimeoutMs }
    const asking = onEveryReplica(scope, db, (_place, peer) => peer.replica.upkeep.replicaInfo(call))
    const infos = await asking.catch(() => [])
    const running = infos.some(({ compacting }) => compacting)
    if (!running && this.#requests.get(db.incarnation) === request) this.#requests.delete(db.incarnation)
    return running
  }
}
