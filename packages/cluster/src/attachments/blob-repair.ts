import type { BlobRepairRequests, CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { provideBlobs } from './blob-transfer.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

/** Largest number of concurrent repairs. Damage beyond this limit is found again by the next read. */
const runningMax = 4

/** Replaces attachment content on replicas where a read found it missing or damaged. */
export class BlobRepair implements BlobRepairRequests {
  readonly #scope: () => CoordinatorScope
  readonly #running = new Set<string>()

  constructor(scope: () => CoordinatorScope) {
    this.#scope = scope
  }

  request(place: ShardPlace, peer: Peer, hash: string): void {
    const key = `${peer.node}/${hash}`
    if (this.#running.size >= runningMax || this.#running.has(key)) return
    this.#running.add(key)
    this.#scope().background.track(this.#run(key, place, peer, hash))
  }

  async #run(key: string, place: ShardPlace, peer: Peer, hash: string): Promise<void> {
    const { log } = this.#scope().runtime
    try {
      await provideBlobs(this.#scope(), peer, [hash], place, 'blob-repair', { replace: true })
      const fields = { peer: peer.node, blob: hash }
      log.warn(fields, 'attachment content was missing or damaged on a replica and has been repaired')
    } catch (error) {
      const fields = { peer: peer.node, blob: hash, error: asReplicaError(error).message }
      log.warn(fields, 'attachment content is missing or damaged on a replica and could not be repaired')
    } finally {
      this.#running.delete(key)
    }
  }
}
