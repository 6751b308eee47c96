export { createNode } from './node.ts'
export type { Node, NodeParts, NodeSeams } from './node.ts'
export { LiveConfiguration } from './configuration/live-configuration.ts'
export type { ConfigurationFiles } from './configuration/live-configuration.ts'
export { nodeOptions } from './configuration/node-options.ts'
export type { ClusterOptions, NodeOptions } from './configuration/node-options.ts'
export { ConfigurationError } from './configuration/settings.ts'
export type { IniFile } from './configuration/settings.ts'
// These exports inspect the disk of a simulated node.
export {
  blobStoreName, documentStoreName, indexStoreName, prefixMax, readIndexStore, ShardDirectory, ShardEngine, ShardHost,
  ShardKeys, verifyShard, viewReduceAgain,
} from '@sectional/shard'
export type { IndexedReplica, KeyKind } from '@sectional/shard'
// These are the types of the metadata that `Node.control` returns.
export {
  activeReplicas, controlStoreName, DamagedControlStoreError, defaultControlPlaneOptions, defaultRaftDriverOptions,
  eventsDatabase, majority, RaftStorage,
} from '@sectional/cluster'
export type {
  ClusterState, ControlPlane, ControlPlaneNode, DatabaseRecord, RaftDriverOptions, ShardRecord,
} from '@sectional/cluster'
// This export recovers a cluster from the disk of a simulated node.
export { ClusterRecovery } from '@sectional/cluster'
// These exports connect strangers to a simulated cluster.
export { createPeerNetwork, defaultLimits } from '@sectional/rpc'
export type { FrameKey, FrameSeal, RpcLimits } from '@sectional/rpc'
