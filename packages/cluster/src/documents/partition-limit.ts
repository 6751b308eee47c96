import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { WriteOptions } from '../contracts/coordinator.ts'

/** Only partitioned databases have one. */
export function partitionLimit(db: DatabaseRecord, { partitionBytesMax }: WriteOptions): { readonly partitionBytesMax?: number } {
  return db.partitioned && partitionBytesMax !== undefined && partitionBytesMax < Number.POSITIVE_INFINITY ? { partitionBytesMax } : {}
}
