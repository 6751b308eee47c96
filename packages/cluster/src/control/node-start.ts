/**
 * Detects that a node runs on an older copy of its data directory.
 *
 * A node draws an id at each start and records it on disk before it contacts any other node. The metadata log records
 * the newest id of each member. A data directory that was restored from a copy does not hold the ids that were recorded
 * after the copy was made. It may have lost acknowledged entries, votes and documents, so the node must neither vote
 * nor count.
 */
import type { PeerStart } from '@sectional/core'

/** The metadata log's record of a member's newest start. */
export interface RecordedStart {
  /** The id of the start. Empty when the data directory is known to be an older copy and is no longer trusted. */
  readonly id: string
  /** Index of the log entry that recorded the start. */
  readonly index: number
  /** Ids of earlier starts, the newest first. An announcement of one of them is late and has no effect. */
  readonly former: readonly string[]
}

/**
 * Ids that a node keeps of starts that may not have been recorded. A node rarely starts more often without a leader.
 */
export const unconfirmedStartsMax = 32
const formerStartsMax = 32

/** Returns the record that a node writes to its disk when it starts. */
export function nextStart(before: PeerStart | undefined, id: string): PeerStart {
  return { ids: [id, ...before?.ids ?? []].slice(0, unconfirmedStartsMax), confirmed: before?.confirmed ?? 0 }
}

/**
 * Returns the record that a node writes to its disk when it sees that the log has recorded this start; null when the
 * log has not, or when that is already on disk.
 */
export function confirmedStart(own: PeerStart, recorded: RecordedStart | undefined): PeerStart | null {
  const current = own.ids[0]
  if (recorded === undefined || current === undefined || recorded.id !== current || recorded.index <= own.confirmed) {
    return null
  }
  return { ids: [current], confirmed: recorded.index }
}

/**
 * Returns the log's record after the announcement of a start. Without a start the data directory is no longer trusted.
 */
export function recordStart(
  before: RecordedStart | undefined, start: PeerStart | undefined, index: number,
): RecordedStart {
  const [id = '', ...earlier] = start?.ids ?? []
  const former = [before?.id ?? '', ...earlier, ...before?.former ?? []].filter((one, at, all) =>
    one !== '' && one !== id && all.indexOf(one) === at)
  return { id, index, former: former.slice(0, formerStartsMax) }
}

/**
 * Returns whether the announced start is not the node's newest one, because the node has announced another start since.
 */
export function isLate(recorded: RecordedStart | undefined, start: PeerStart | undefined): boolean {
  return start?.ids[0] !== undefined && recorded !== undefined && recorded.id !== ''
    && recorded.former.includes(start.ids[0])
}

/**
 * Returns whether the node that announced this start has another log: according to its own metadata, a start of it was
 * recorded at `confirmed`, but the log here recorded none at that index. One of the two logs was then begun by nodes
 * with older copies of their data directories.
 *
 * @param applied index up to which the log here has been applied
 */
export function hasAnotherLog(
  recorded: RecordedStart | undefined, start: PeerStart | undefined, applied: number,
): boolean {
  if (recorded === undefined || start === undefined) return false
  return start.confirmed <= applied && recorded.index < start.confirmed
}

/**
 * Returns whether the node that announced this start runs on an older copy of the data directory whose start was
 * recorded.
 */
export function isOutdated(recorded: RecordedStart | undefined, start: PeerStart | undefined): boolean {
  if (recorded === undefined || start === undefined) return false
  return recorded.index > start.confirmed && !start.ids.includes(recorded.id)
}

/**
 * Returns whether the log and the votes of the node that announced this start are in doubt. They are not while no log
 * has confirmed a start of the node: it joined with an empty disk. The metadata here may be older than its admission,
 * and then it still holds the start of an earlier membership under the same name.
 *
 * @param applied index up to which the log here has been applied
 */
export function isInDoubt(
  recorded: RecordedStart | undefined, start: PeerStart | undefined, applied: number,
): boolean {
  if (start === undefined || start.confirmed === 0) return false
  return isOutdated(recorded, start) || hasAnotherLog(recorded, start, applied)
}
