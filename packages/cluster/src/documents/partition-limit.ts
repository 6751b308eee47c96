import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { WriteOptions } from '../contracts/coordinator.ts'

/** The byte limit of a partition, for the request to a replica. Empty for databases without partitions. */
export function partitionLimit(
  db: DatabaseRecord, { partitionBytesMax }: WriteOptions,
): { readonly partitionBytesMax?: number } {
  return db.partitioned && partitionBytesMax !== undefined && partitionBytesMax < Number.POSITIVE_INFINITY
    ? { partitionBytesMax }
    : {}
}
