/** The ring of document hashes and its ranges (docs/reference/cluster-and-nodes.md#get-db_shards). */
import { crc32 } from 'node:zlib'
import type { HashRange } from '../contracts/shard-replica.ts'

/** Size of the hash space. */
const ringSize = 0x1_0000_0000
const hashMax = 0xffff_ffff

/** Most shards of one database. */
export const shardCountMax = 1024

/**
 * Returns the CRC-32 of the id's UTF-8 bytes. In a partitioned database it is the CRC-32 of the partition, so that all
 * documents of a partition are in one shard. Ids that start with an underscore have no partition.
 */
export function documentHash(id: string, partitioned: boolean): number {
  return crc32(partitioned ? partitionOf(id) ?? id : id)
}

/** Returns the hash that all documents of a partition have. */
export function partitionHash(partition: string): number {
  return crc32(partition)
}

/** Returns the part of the id before the first colon; null without a colon, and for ids that start with `_`. */
export function partitionOf(id: string): string | null {
  const colon = id.indexOf(':')
  return colon === -1 || id.startsWith('_') ? null : id.slice(0, colon)
}

/** Splits the ring into `count` ranges; the last one takes the remainder. */
export function shardRanges(count: number): HashRange[] {
  if (!Number.isInteger(count) || count < 1 || count > shardCountMax) {
    throw new RangeError(`shard count ${count} is not within 1 and ${shardCountMax}`)
  }
  const step = Math.floor(ringSize / count)
  return Array.from(
    { length: count }, (_, i) => ({ begin: i * step, end: i === count - 1 ? hashMax : (i + 1) * step - 1 }),
  )
}

export function rangeContains(range: HashRange, hash: number): boolean {
  return hash >= range.begin && hash <= range.end
}

/** Ascending by begin, then by end. */
export function compareRanges(a: HashRange, b: HashRange): number {
  return a.begin - b.begin || a.end - b.end
}

/** `00000000-7fffffff`. */
export function formatRange(range: HashRange): string {
  return `${hex(range.begin)}-${hex(range.end)}`
}

function hex(hash: number): string {
  return hash.toString(16).padStart(8, '0')
}

/** @throws RangeError when the text is not a range */
export function parseRange(text: string): HashRange {
  const match = /^([0-9a-f]{8})-([0-9a-f]{8})$/.exec(text)
  const range = match === null ? null : { begin: parseInt(match[1]!, 16), end: parseInt(match[2]!, 16) }
  if (range === null || range.begin > range.end) throw new RangeError(`not a hash range: ${text}`)
  return range
}

/**
 * Finds the range that contains a hash, by bisection.
 *
 * @param ranges ascending, without gaps or overlaps, as `shardRanges` returns them
 * @returns the index of the range, or -1 when no range contains the hash
 */
export function findRange(ranges: readonly HashRange[], hash: number): number {
  let low = 0
  let high = ranges.length - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    const range = ranges[middle]!
    if (hash < range.begin) high = middle - 1
    else if (hash > range.end) low = middle + 1
    else return middle
  }
  return -1
}
