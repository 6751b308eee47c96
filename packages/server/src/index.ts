export { createNode } from './node.ts'
export type { Node, NodeParts, NodeSeams } from './node.ts'
export { LiveConfiguration } from './configuration/live-configuration.ts'
export type { ConfigurationFiles } from './configuration/live-configuration.ts'
export { nodeOptions } from './configuration/node-options.ts'
export type { ClusterOptions, NodeOptions } from './configuration/node-options.ts'
export { ConfigurationError } from './configuration/settings.ts'
export type { IniFile } from './configuration/settings.ts'
// What looks into a simulated node's disk.
export { blobStoreName, documentStoreName, ShardHost, ShardKeys, verifyShard } from '@sectional/shard'
export type { KeyKind } from '@sectional/shard'
// The metadata that `Node.control` gives.
export {
  activeReplicas, controlStoreName, DamagedControlStoreError, defaultRaftDriverOptions, majority,
} from '@sectional/cluster'
export type {
  ClusterState, ControlPlane, ControlPlaneNode, DatabaseRecord, RaftDriverOptions, ShardRecord,
} from '@sectional/cluster'
