/**
 * What a node tells about itself. The server package implements it; `node-questions` carries the same
 * questions to other nodes. Declared here by its consumer.
 */

export interface JsonObject { readonly [key: string]: unknown }

/** Leaf of the statistics tree; inner nodes are objects of leaves and nodes. */
export interface Statistic {
  readonly value: unknown
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly desc: string
}

export interface NodeInformation {
  /** Version of Sectional, for the greeting and the Server header. */
  readonly version: string
  /** `/_node/{name}/_stats`: nested objects by path element, leaves are `Statistic`. */
  statistics(): Promise<JsonObject>
  /** `/_node/{name}/_system`. */
  system(): Promise<JsonObject>
  /** `/_node/{name}/_prometheus`, text format. */
  prometheus(): Promise<string>
  /** `/_node/{name}/_versions`. */
  versions(): JsonObject
  /** This node's running tasks (`_active_tasks`), each with `node`, `pid`, `type`, `started_on`, `updated_on`. */
  activeTasks(): readonly JsonObject[]
  /** `/_node/{name}/_replicas/{db}`: this node's replicas of the database, each with the digest of its documents. */
  replicas(database: string): Promise<readonly JsonObject[]>
  /** The `seeds` member of `/_up`: node name -> state. */
  seeds(): JsonObject
}
