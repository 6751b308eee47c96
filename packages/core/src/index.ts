export * from './contracts/shard-replica.ts'
export * from './contracts/peer-network.ts'
export * from './errors.ts'
