/** Options that apply to databases at their creation. */
import { integer, option } from '@sectional/core/options'

/** Most shards of a database. */
export const shardsPerDatabaseMax = 256
/** Most replicas of a shard. A since-token has room for a part of each replica of a database with the most shards. */
export const replicasPerShardMax = 32

export const databaseDeclarations = {
  shardsPerDatabase: option('cluster/q', integer({ min: 1, max: shardsPerDatabaseMax }), {
    default: 8,
    effect: 'live',
    help: 'Number of shards of a new database.',
  }),

  replicasPerShard: option('cluster/n', integer({ min: 1, max: replicasPerShardMax }), {
    default: 3,
    effect: 'live',
    help: 'Number of replicas of each shard of a new database; there are fewer while the cluster has fewer nodes.',
  }),
}
