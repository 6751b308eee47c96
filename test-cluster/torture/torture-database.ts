/** The database of the workload. */
export const database = 'torture'
/** Copies of each shard (n). */
export const replicasPerShard = 3
/** The default of r and w. */
export const majority = 2
