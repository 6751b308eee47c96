/** The groups of indexes whose rows are those of views: an emitted key and a value as JSON. */
import {
  decodeViewRow, encodeViewGroup, type IndexDefinition, parseEmitted, partitionPrefixLength, type SortKeyEncoder,
} from '@sectional/core'
import type { IndexedRow } from './indexer.ts'

/** Returns the prefix of a key that names its group (`Indexer.groupOf`). @param encoder has made the key */
export function groupOfKey(
  encoder: SortKeyEncoder, key: string, level: number, { options }: IndexDefinition,
): string {
  const start = options['partitioned'] === true ? partitionPrefixLength(key) : 0
  return key.slice(0, start) + encoder.groupKey(key.slice(start), level)
}

/** Returns the value of a group as coordinators receive it (`Indexer.encodeGroup`). */
export function encodeRowGroup(row: IndexedRow, level: number | 'exact', value: Uint8Array): Uint8Array {
  return encodeViewGroup(groupKeyJson(decodeViewRow(row.value).key, level), value)
}

/** Returns the key that a client receives for the group of a row with that key; null without groups. */
function groupKeyJson(key: string, level: number | 'exact'): string | null {
  if (level === 0) return null
  if (level === 'exact' || !key.startsWith('[')) return key
  return JSON.stringify((parseEmitted(key) as readonly unknown[]).slice(0, level))
}
