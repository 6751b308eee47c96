import { shardKey, type ShardId } from '@sectional/core'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

export interface MissedNoticesParts {
  readonly replicas: ReplicaDirectory
  /** Milliseconds of one notice. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** A notice did not arrive: `retry` is to be called before long. */
  readonly tryAgain: () => void
}

interface Notice {
  readonly shard: ShardId
  readonly node: string
  /** The replica missed more while the notice was on its way. */
  again: boolean
  sending: Promise<void> | undefined
}

/**
 * Tells the nodes of replicas which did not store what others confirmed that these replicas have to catch up
 * (`StoreRevisionsRequest.missed`). One notice for each replica is kept until it has arrived, so that there are at
 * most as many as the cluster has replicas.
 */
export class MissedNotices {
  readonly #parts: MissedNoticesParts
  readonly #notices = new Map<string, Notice>()

  constructor(parts: MissedNoticesParts) {
    this.#parts = parts
  }

  send(shard: ShardId, node: string): void {
    const key = `${node} ${shardKey(shard)}`
    const known = this.#notices.get(key)
    if (known?.sending !== undefined) known.again = true
    if (known !== undefined) return
    const notice: Notice = { shard, node, again: false, sending: undefined }
    this.#notices.set(key, notice)
    this.#start(key, notice)
  }

  /** Sends again what has not arrived: to one node whose link is open again, or to all. */
  retry(node?: string): void {
    for (const [key, notice] of this.#notices) if (node === undefined || notice.node === node) this.#start(key, notice)
  }

  /** Whoever stops it aborts `signal` first. */
  async stop(): Promise<void> {
    await Promise.all([...this.#notices.values()].map(({ sending }) => sending))
  }

  #start(key: string, notice: Notice): void {
    const { replicas, signal } = this.#parts
    if (signal.aborted || notice.sending !== undefined || !replicas.isConnected(notice.node)) return
    notice.again = false
    notice.sending = this.#deliver(notice).then(arrived => {
      notice.sending = undefined
      if (arrived && !notice.again) this.#notices.delete(key)
      else this.#parts.tryAgain()
    })
  }

  /** Resolves with false when the node could not be told. */
  async #deliver({ node, shard }: Notice): Promise<boolean> {
    const { replicas, timeoutMs, signal } = this.#parts
    try {
      await replicas.replica(node, shard).storeRevisions({ revisions: [], revsLimit: 1, missed: true }, { timeoutMs, signal, requestId: 'missed-notice' })
      return true
    } catch (error) {
      // A replica that is gone decides nothing any more.
      return asReplicaError(error).code === 'not_hosted'
    }
  }
}
