/** Inclusive range of the 32-bit hash space, `0 <= begin <= end <= 0xffffffff`. */
export interface HashRange { readonly begin: number; readonly end: number }

/** One shard of one incarnation of a database: a re-created name is another incarnation. */
export interface ShardId { readonly incarnation: string; readonly range: HashRange }
