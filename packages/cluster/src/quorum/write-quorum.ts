/**
 * Decides when a write may be answered, without using the network. Only durable copies on active replicas count. A
 * failure never ends the wait early (docs/reference/README.md#quorums).
 */
import { quorumSize } from './read-quorum.ts'

export interface WriteQuorum {
  /** The w of this write. A value greater than `replicas` can never be met. */
  readonly needed: number
  /** Number of active replicas, reachable or not. */
  readonly replicas: number
  readonly durable: number
  readonly failed: number
}

/** `accepted`: every replica has replied, and at least one but fewer than w copies are durable (status 202). */
export type WriteVerdict = 'waiting' | 'met' | 'accepted' | 'failed'

/**
 * @param active number of replicas that count (filling ones do not)
 * @param w the client's w: values below 1 act as 1, values above `active` are never met; undefined: a majority
 */
export function writeQuorum(active: number, w: number | undefined): WriteQuorum {
  return { needed: quorumSize(active, w), replicas: active, durable: 0, failed: 0 }
}

export function withDurable(quorum: WriteQuorum): WriteQuorum {
  return { ...quorum, durable: quorum.durable + 1 }
}

export function withFailedWrite(quorum: WriteQuorum): WriteQuorum {
  return { ...quorum, failed: quorum.failed + 1 }
}

/**
 * Returns the verdict on a write during which the shard map changed, by the map at its start and the map now. The write
 * is met when it is met by both, so that readers with either map see it (like joint configurations in section 6 of the
 * Raft paper).
 */
export function jointWriteVerdict(quorums: readonly WriteQuorum[]): WriteVerdict {
  const verdicts = quorums.map(writeVerdict)
  if (verdicts.includes('waiting')) return 'waiting'
  if (verdicts.every(verdict => verdict === 'met')) return 'met'
  return verdicts.every(verdict => verdict === 'failed') ? 'failed' : 'accepted'
}

/**
 * Returns the verdict on a write by the replies so far. `accepted` and `failed` are only possible when every active
 * replica has replied or has failed.
 */
export function writeVerdict({ needed, replicas, durable, failed }: WriteQuorum): WriteVerdict {
  if (durable >= needed) return 'met'
  if (durable + failed < replicas) return 'waiting'
  return durable > 0 ? 'accepted' : 'failed'
}
