/**
 * Information that a node gives about itself. The server package implements this interface; `node-questions` asks other
 * nodes for the same information.
 */

import type { JsonObject } from '@sectional/core'

/** A leaf of the statistics tree. Inner nodes are objects of leaves and inner nodes. */
export interface Statistic {
  readonly value: unknown
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly desc: string
}

export interface NodeInformation {
  /** Version of Sectional in the welcome message and the Server header. */
  readonly version: string
  /** Answer of `/_node/{name}/_stats`: nested objects by path element with `Statistic` leaves. */
  statistics(): Promise<JsonObject>
  /** Answer of `/_node/{name}/_system`. */
  system(): Promise<JsonObject>
  /** Answer of `/_node/{name}/_prometheus`, in Prometheus text format. */
  prometheus(): Promise<string>
  /** Answer of `/_node/{name}/_versions`. */
  versions(): JsonObject
  /** Running tasks of this node (`_active_tasks`), each with `node`, `pid`, `type`, `started_on` and `updated_on`. */
  activeTasks(): readonly JsonObject[]
  /**
   * Answer of `/_node/{name}/_replicas/{db}`: the node's replicas of the database, each with the digest of its
   * documents.
   */
  replicas(database: string): Promise<readonly JsonObject[]>
  /** The member `seeds` of `/_up`: the state of each seed by node name. */
  seeds(): JsonObject
}
