/**
 * When a write may be answered, without a network. Only durable copies on active replicas count; a failure
 * never ends the wait early (docs/reference/README.md#quorums).
 */
import { quorumSize } from './read-quorum.ts'

export interface WriteQuorum {
  /** w of this write. More than `replicas` can never be met. */
  readonly needed: number
  /** Active replicas, reachable or not. */
  readonly replicas: number
  readonly durable: number
  readonly failed: number
}

/** `accepted`: every replica has replied, at least one copy is durable, but fewer than w (202). */
export type WriteVerdict = 'waiting' | 'met' | 'accepted' | 'failed'

/**
 * @param active replicas that count (filling ones do not)
 * @param w as the client gave it: below 1 acts as 1, above `active` is never met; undefined: a majority
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
 * The verdict on a write while whose shard map changed, by the map that it came in with and the one that stands now: it
 * is met where both are, so that readers by either map see it (as joint configurations do, Raft 6).
 */
export function jointWriteVerdict(quorums: readonly WriteQuorum[]): WriteVerdict {
  const verdicts = quorums.map(writeVerdict)
  if (verdicts.includes('waiting')) return 'waiting'
  if (verdicts.every(verdict => verdict === 'met')) return 'met'
  return verdicts.every(verdict => verdict === 'failed') ? 'failed' : 'accepted'
}

export function writeVerdict({ needed, replicas, durable, failed }: WriteQuorum): WriteVerdict {
  if (durable >= needed) return 'met'
  if (durable + failed < replicas) return 'waiting'
  return durable > 0 ? 'accepted' : 'failed'
}
