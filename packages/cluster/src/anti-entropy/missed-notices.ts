import { shardKey, type ShardId } from '@sectional/core'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

export interface MissedNoticesParts {
  readonly replicas: ReplicaDirectory
  /** Milliseconds for the delivery of one notice. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called when a notice did not arrive: `retry` must be called soon. */
  readonly tryAgain: () => void
}

interface Notice {
  readonly shard: ShardId
  readonly node: string
  /** True when the replica missed more writes while the notice was being sent. */
  again: boolean
  sending: Promise<void> | undefined
}

/**
 * Informs nodes that their replicas missed writes which others confirmed and must catch up
 * (`StoreRevisionsRequest.missed`). One notice per replica is kept until it has arrived or its replica is gone, so that
 * there are at most as many notices as the cluster has replicas.
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

  /** Sends the notices again that have not arrived: those to one node whose link is open again, or all. */
  retry(node?: string): void {
    for (const [key, notice] of this.#notices) if (node === undefined || notice.node === node) this.#start(key, notice)
  }

  /** Drops the notices to replicas that do not exist any more: their node may never come back. */
  forget(exists: (node: string, shard: ShardId) => boolean): void {
    for (const [key, { shard, node, sending }] of this.#notices) {
      if (sending === undefined && !exists(node, shard)) this.#notices.delete(key)
    }
  }

  /** The caller must abort `signal` first. Resolves when no notice is being sent. */
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

  /** Resolves to false when the notice did not arrive. */
  async #deliver({ node, shard }: Notice): Promise<boolean> {
    const { replicas, timeoutMs, signal } = this.#parts
    try {
      const notice = { revisions: [], revsLimit: 1, missed: true }
      await replicas.replica(node, shard).storeRevisions(notice, { timeoutMs, signal, requestId: 'missed-notice' })
      return true
    } catch (error) {
      // A replica that no longer exists decides no edits, so the notice counts as delivered.
      return asReplicaError(error).code === 'not_hosted'
    }
  }
}
