/** Options that apply to databases at their creation. */
import { integer, option } from '@sectional/core/options'

export const databaseDeclarations = {
  shardsPerDatabase: option('cluster/q', integer({ min: 1, max: 256 }), {
    default: 8,
    effect: 'live',
    help: 'Number of shards of a new database.',
  }),

  replicasPerShard: option('cluster/n', integer({ min: 1, max: 32 }), {
    default: 3,
    effect: 'live',
    help: 'Number of replicas of each shard of a new database; there are fewer while the cluster has fewer nodes.',
  }),
}
