/**
 * Tells a data directory that a node has gone on with from an older copy of it.
 *
 * A node draws an id at each start and writes it down before it talks to anybody. The metadata log records the newest
 * id of each member. A data directory that was put back from a copy does not know the ids that were recorded after the
 * copy was made. It may have lost acknowledged entries, votes and documents, so it must neither vote nor count.
 */
import type { PeerStart } from '@sectional/core'

/** What the metadata log has recorded of a member's newest start. */
export interface RecordedStart {
  /** The id of the start. Empty: the data directory is known to be an older copy, and is trusted no more. */
  readonly id: string
  /** Index of the entry that recorded it. */
  readonly index: number
  /** Ids of earlier starts, the newest first: an announcement of one of them is late, and says nothing. */
  readonly former: readonly string[]
}

/** Ids that a node keeps of starts of which it does not know whether they were recorded. More starts without a leader are rare. */
export const unconfirmedStartsMax = 32
const formerStartsMax = 32

/** What a node writes down when it starts. */
export function nextStart(before: PeerStart | undefined, id: string): PeerStart {
  return { ids: [id, ...before?.ids ?? []].slice(0, unconfirmedStartsMax), confirmed: before?.confirmed ?? 0 }
}

/** What a node writes down when it sees that this start was recorded; null: it was not, or that is known. */
export function confirmedStart(own: PeerStart, recorded: RecordedStart | undefined): PeerStart | null {
  const current = own.ids[0]
  if (recorded === undefined || current === undefined || recorded.id !== current || recorded.index <= own.confirmed) return null
  return { ids: [current], confirmed: recorded.index }
}

/** The record after the announcement of a start; without one the data directory is trusted no more. */
export function recordStart(before: RecordedStart | undefined, start: PeerStart | undefined, index: number): RecordedStart {
  const [id = '', ...earlier] = start?.ids ?? []
  const former = [before?.id ?? '', ...earlier, ...before?.former ?? []].filter((one, at, all) => one !== '' && one !== id && all.indexOf(one) === at)
  return { id, index, former: former.slice(0, formerStartsMax) }
}

/** Whether the process that announced this start is gone, since its node has announced another one. */
export function isLate(recorded: RecordedStart | undefined, start: PeerStart | undefined): boolean {
  return start?.ids[0] !== undefined && recorded !== undefined && recorded.id !== '' && recorded.former.includes(start.ids[0])
}

/**
 * Whether the node that started in this way has another log: by its own metadata a start of it was recorded at
 * `confirmed`, and the log here has recorded none there. Nodes with older copies of their data directories began one of
 * the two logs.
 *
 * @param applied index up to which the log here has been applied
 */
export function hasAnotherLog(
  recorded: RecordedStart | undefined, start: PeerStart | undefined, applied: number,
): boolean {
  if (recorded === undefined || start === undefined) return false
  return start.confirmed <= applied && recorded.index < start.confirmed
}

/** Whether the node that started in this way has an older copy of the data directory whose start was recorded. */
export function isOutdated(recorded: RecordedStart | undefined, start: PeerStart | undefined): boolean {
  if (recorded === undefined || start === undefined) return false
  return recorded.index > start.confirmed && !start.ids.includes(recorded.id)
}
