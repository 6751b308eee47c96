import { SortKeyEncoder } from './sort-key.ts'

const encoder = new SortKeyEncoder('raw')

/**
 * Returns what precedes the sort keys of the rows of one partition, in an index of a partitioned database whose rows
 * are ordered by partition. The name is encoded by its UTF-8, whatever the collation of the index: two names that a
 * collation regards as equal are two partitions. No prefix is the beginning of another one.
 *
 * @param partition name of a partition, without the colon that ends it in the ids of documents
 */
export function partitionPrefix(partition: string): string {
  return encoder.encode(partition)
}

/**
 * Returns the number of characters of the prefix.
 *
 * @param key that starts with the prefix of a partition
 */
export function partitionPrefixLength(key: string): number {
  // The key of a text has one byte 00, at its end.
  return key.indexOf('\0') + 1
}
