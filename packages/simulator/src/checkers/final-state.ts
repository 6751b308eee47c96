import type { DatabaseRecord } from '@sectional/server'
import type { Operation } from '../workload/history.ts'
import type { DocumentContents, ReplicaContents } from './disk-contents.ts'

/** One database after everything has come to rest. */
export interface FinalDatabase {
  readonly record: DatabaseRecord
  readonly replicas: readonly ReplicaContents[]
  /** Of each document, as the first replica of its range has it. */
  readonly documents: ReadonlyMap<string, DocumentContents>
}

export interface FinalState {
  readonly databases: ReadonlyMap<string, FinalDatabase>
  readonly operations: readonly Operation[]
  /** Disks that were replaced by empty ones. */
  readonly lostDisks: number
  /** Nothing ever went wrong in this run. */
  readonly everCalm: boolean
}

/** What is wrong, in words; empty: nothing. */
export type Findings = readonly string[]

export function finalDatabase(record: DatabaseRecord, replicas: readonly ReplicaContents[]): FinalDatabase {
  const documents = new Map<string, DocumentContents>()
  for (const replica of replicas) {
    for (const [id, contents] of replica.documents) if (!documents.has(id)) documents.set(id, contents)
  }
  return { record, replicas, documents }
}

/** Whether an operation was surely carried out in this incarnation of its database. */
export function isOf(operation: Operation, { record }: FinalDatabase): boolean {
  return operation.incarnationBefore === record.incarnation && operation.incarnationAfter === record.incarnation
}

export function describe({ number, client, kind, database, id, revision, outcome, node }: Operation): string {
  return `#${number} (${kind} ${database}/${id} by ${client} through node ${node}: ${outcome}${revision === undefined ? '' : ` ${revision}`})`
}
