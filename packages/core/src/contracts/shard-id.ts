/** Inclusive range of the 32-bit hash space, `0 <= begin <= end <= 0xffffffff`. */
export interface HashRange { readonly begin: number; readonly end: number }

/** Identifies a shard. A database that is deleted and created again under its name gets another `incarnation`. */
export interface ShardId { readonly incarnation: string; readonly range: HashRange }
