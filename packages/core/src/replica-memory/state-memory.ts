import { RevisionTree } from '../revisions/revision-tree.ts'
import { ReplicaError } from '../contracts/shard-replica.ts'
import type { AttachmentRecord, CallContext, PurgeRow } from '../contracts/shard-replica.ts'

export interface StoredDocument { readonly tree: RevisionTree; readonly sequence: number }
export interface StoredBody { readonly body: Uint8Array; readonly attachments?: readonly AttachmentRecord[] }

const pageRows = 100

/** The part of the state of a `MemoryShardReplica` that both its own verbs and those of its upkeep use. */
export class MemoryState {
  readonly history: string
  /** While true, `updateDocuments` declines unless it is forced. */
  catchingUp = false
  readonly documents = new Map<string, StoredDocument>()
  /** The bodies of revisions by the key that the node in the tree has. */
  readonly bodies = new Map<number, StoredBody>()
  /** The sequence up to which this replica has the changes of each peer, by the peer's history. */
  readonly seen = new Map<string, number>()
  /** The purge sequence up to which this replica has applied the purges of each peer, by the peer's history. */
  readonly purgesSeen = new Map<string, number>()
  /** The recorded purges in the order of their sequences. */
  purges: readonly PurgeRow[] = []
  purgeSequence = 0
  sequence = 0

  constructor(history: string) {
    this.history = history
  }

  /** @throws ReplicaError when the call is cancelled or names another history */
  check(context: CallContext): void {
    if (context.signal?.aborted) throw new ReplicaError('cancelled', 'the caller has cancelled the call')
    if (context.history === undefined || context.history === this.history) return
    throw new ReplicaError('other_history', 'the replica has another history')
  }

  async* pages<Row>(
    rows: readonly Row[], limit: number | undefined, context: CallContext,
  ): AsyncGenerator<readonly Row[]> {
    const end = Math.min(rows.length, limit ?? rows.length)
    for (let at = 0; at === 0 || at < end; at += pageRows) {
      this.check(context)
      if (at < end) yield rows.slice(at, Math.min(end, at + pageRows))
    }
  }

  tree(id: string): RevisionTree {
    return this.documents.get(id)?.tree ?? RevisionTree.empty
  }

  body(key: number | null): StoredBody | undefined {
    return key === null ? undefined : this.bodies.get(key)
  }

  /** Returns the live documents in the byte order of their ids. */
  live(): [string, StoredDocument][] {
    return [...this.documents].filter(([, { tree }]) => !tree.winner().deleted).sort(([a], [b]) => compareBytes(a, b))
  }
}

/** Compares in the byte order of UTF-8. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
