/** The history of a run: the requests and answers of clients, and what the nodes knew at those moments. */
import { documentHash, rangeContains } from '@sectional/core'
import type { RevisionPath } from '@sectional/core'
import type { ControlPlane, DatabaseRecord, ShardRecord } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { ContentName } from './attachment-content.ts'

export type OperationKind =
  | 'read' | 'write' | 'delete' | 'graft' | 'attach' | 'detach' | 'read-attachment' | 'purge' | 'compact'
  | 'local-write' | 'local-delete' | 'local-read' | 'local-list' | 'list' | 'open-revisions' | 'feed'
  | 'create-database' | 'delete-database' | 'look-database'
  /** An operation of an action that only the action's own checkers examine. */
  | `custom:${string}`

/** Returns whether the operation creates a revision of a document. */
export function makesRevision({ kind }: Pick<Operation, 'kind'>): boolean {
  return kind === 'write' || kind === 'delete' || kind === 'graft' || kind === 'attach' || kind === 'detach'
}

export type Outcome =
  /** The operation met its quorum (200, 201). */
  | 'done'
  /** The operation was carried out below w, or is promised (202). */
  | 'accepted'
  /** The answer says that nothing was done. */
  | 'failed'
  /** The operation may have been carried out, or may still be. */
  | 'unknown'

/** The attachments of a revision. */
export interface AttachmentChanges {
  /** Whether attachments of the parent that are not listed are kept. */
  readonly inherits: boolean
  /** Contents by attachment name; null removes the attachment, `inherited` keeps that of the parent. */
  readonly contents: Readonly<Record<string, ContentName | 'inherited' | null>>
}

export interface Operation {
  readonly number: number
  readonly client: string
  readonly node: number
  readonly kind: OperationKind
  readonly database: string
  /** The document's id; empty for operations on databases. For a list: its keys, or `PARTITION:*`; empty: all. */
  readonly id: string
  readonly startMs: number
  /** For a write: the value in the body, which identifies the operation. For a read of an attachment: its name. */
  readonly value: string
  /** The revision that a write or delete replaces. */
  readonly parent: string | null
  readonly r?: number
  readonly w?: number
  /** The attachments of a written revision; undefined when it has none. */
  readonly attachments?: AttachmentChanges
  /**
   * For a purge: the revisions that it names, with the ancestors that the client saw. For a graft: the revision with
   * its ancestors.
   */
  readonly paths?: readonly RevisionPath[]
  /** For a graft: whether the revision is a tombstone. */
  readonly tombstone?: boolean
  endMs: number
  status: number
  outcome: Outcome
  /** Whether the answer was that the database does not exist. */
  databaseMissing: boolean
  /** Whether the answer reported a conflict. */
  conflict: boolean
  /** The revision that was written or read; undefined when it is unknown or nothing was found. */
  revision: string | undefined
  /** For a read: the value in the body, or the name of the content. */
  readValue: string | undefined
  /** For a purge: the revisions that were removed. */
  removed: readonly string[] | undefined
  /** The documents of a list, the leaves of a document, or the rows of a feed. */
  rows: readonly ShownRow[] | undefined
  /** The database's incarnation according to the node, when it received the request and when it answered. */
  incarnationBefore: string | undefined
  incarnationAfter: string | undefined
  /** Number of replicas of the document's range that counted when the node received the request. */
  activeBefore: number
  /** Whether no fault had an effect between some time before the start and the end. */
  calm: boolean
  /** Milliseconds without any fault before the start; 0 when a fault was active until the end. */
  calmMs: number
}

/** A revision of a document in the answer to a request for several. */
export interface ShownRow {
  readonly id: string
  /** null: the answer says that the document does not exist or is deleted. */
  readonly revision: string | null
  /** The value in the body, if it was shown. */
  readonly value?: string
  /** The parent, if it was shown. */
  readonly parent?: string
}

export class History {
  readonly operations: Operation[] = []
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  begin(
    fields: Pick<Operation, 'client' | 'node' | 'kind' | 'database' | 'id' | 'value' | 'parent' | 'r' | 'w'
      | 'attachments' | 'paths' | 'tombstone'>,
  ): Operation {
    const operation: Operation = {
      ...fields, number: this.operations.length, startMs: this.#world.nowMs, endMs: Infinity, status: 0,
      outcome: 'unknown', databaseMissing: false, conflict: false, revision: undefined, readValue: undefined,
      removed: undefined, rows: undefined, incarnationBefore: undefined, incarnationAfter: undefined, activeBefore: 0,
      calm: false, calmMs: 0,
    }
    this.operations.push(operation)
    const { number, client, node, kind, database, id, parent, value } = operation
    this.#world.say(`${client} > node ${node}: #${number} ${kind} ${database}/${id} ${parent ?? ''} ${value}`)
    return operation
  }

  end(operation: Operation, status: number, outcome: Outcome, said = ''): void {
    operation.endMs = this.#world.nowMs
    operation.status = status
    operation.outcome = outcome
    const read = `${operation.revision ?? ''} ${operation.readValue ?? ''}`
    this.#world.say(`${operation.client} < #${operation.number} ${outcome} ${status} ${read} ${said}`)
  }
}

/** Returns the database as a node knows it now. */
export function databaseRecord(node: SimulatedNode, database: string): DatabaseRecord | undefined {
  const control: ControlPlane | undefined = node.inside?.control
  return control?.state()?.databases.get(database)
}

export function shardOf(record: DatabaseRecord, id: string): ShardRecord {
  const hash = documentHash(id, record.partitioned)
  return record.shards.find(shard => rangeContains(shard.range, hash))!
}
