import type { DatabaseRecord } from '@sectional/server'
import type { Operation } from '../workload/history.ts'
import type { DocumentContents, LeafContents, ReplicaContents } from './disk-contents.ts'

/** One database after the cluster has come to rest. */
export interface FinalDatabase {
  readonly record: DatabaseRecord
  readonly replicas: readonly ReplicaContents[]
  /** Contents of each document on the first replica of its range. */
  readonly documents: ReadonlyMap<string, DocumentContents>
}

export interface FinalState {
  readonly databases: ReadonlyMap<string, FinalDatabase>
  readonly operations: readonly Operation[]
  /** Disks that were replaced by empty ones, and damaged records and blobs. */
  readonly lostDisks: number
  /** When the first of them was lost, in milliseconds; Infinity: none was. */
  readonly lossMs: number
  /** The smallest `_revs_limit` of any database of the run. */
  readonly revsLimit: number
  /** When the cluster had come to rest, in milliseconds; undefined before. */
  readonly restMs?: number
  /** True when no fault occurred in this run. */
  readonly everCalm: boolean
}

/** A leaf with the name of its database and the id of its document. */
export interface FoundLeaf {
  readonly name: string
  readonly final: FinalDatabase
  readonly id: string
  readonly leaf: LeafContents
}

/** Descriptions of violations; empty when there are none. */
export type Findings = readonly string[]

export function finalDatabase(record: DatabaseRecord, replicas: readonly ReplicaContents[]): FinalDatabase {
  const documents = new Map<string, DocumentContents>()
  for (const replica of replicas) {
    for (const [id, contents] of replica.documents) if (!documents.has(id)) documents.set(id, contents)
  }
  return { record, replicas, documents }
}

/** Returns whether an operation was certainly carried out in this incarnation of its database. */
export function isOf(operation: Operation, { record }: FinalDatabase): boolean {
  return operation.incarnationBefore === record.incarnation && operation.incarnationAfter === record.incarnation
}

/** Returns all leaves of all documents. */
export function allLeaves({ databases }: FinalState): readonly FoundLeaf[] {
  return [...databases].flatMap(([name, final]) => [...final.documents].flatMap(
    ([id, { leaves }]) => leaves.map(leaf => ({ name, final, id, leaf })),
  ))
}

export function describe({ number, client, kind, database, id, revision, outcome, node }: Operation): string {
  const result = revision === undefined ? outcome : `${outcome} ${revision}`
  return `#${number} (${kind} ${database}/${id} by ${client} through node ${node}: ${result})`
}
