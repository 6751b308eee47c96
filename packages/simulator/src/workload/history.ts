/** What clients asked for and heard, and what the nodes knew at those moments. */
import { documentHash, rangeContains } from '@sectional/core'
import type { RevisionPath } from '@sectional/core'
import type { ControlPlane, DatabaseRecord, ShardRecord } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import type { ContentName } from './attachment-content.ts'

export type OperationKind =
  | 'read' | 'write' | 'delete' | 'graft' | 'attach' | 'detach' | 'read-attachment' | 'purge' | 'compact'
  | 'local-write' | 'local-delete' | 'create-database' | 'delete-database'
  /** Of an action whose operations only its own checkers look at. */
  | `custom:${string}`

/** Makes a revision of a document. */
export function makesRevision({ kind }: Pick<Operation, 'kind'>): boolean {
  return kind === 'write' || kind === 'delete' || kind === 'graft' || kind === 'attach' || kind === 'detach'
}

export type Outcome =
  /** Met its quorum: 200, 201. */
  | 'done'
  /** 202: done somewhere, below w; or promised. */
  | 'accepted'
  /** An answer that says that nothing was done. */
  | 'failed'
  /** Anything may have been done, or may yet be. */
  | 'unknown'

/** What a revision's attachments are. */
export interface AttachmentChanges {
  /** Those of the parent that are not named stay. */
  readonly inherits: boolean
  /** By name; null: taken away, `inherited`: as the parent has it. */
  readonly contents: Readonly<Record<string, ContentName | 'inherited' | null>>
}

export interface Operation {
  readonly number: number
  readonly client: string
  readonly node: number
  readonly kind: OperationKind
  readonly database: string
  /** Empty for databases. */
  readonly id: string
  readonly startMs: number
  /** What the body carries: names the operation that wrote it. Of an attachment that is read: its name. */
  readonly value: string
  /** The revision that a write or delete edits. */
  readonly parent: string | null
  readonly r?: number
  readonly w?: number
  /** Of a write; undefined: the revision has none. */
  readonly attachments?: AttachmentChanges
  /**
   * Of a purge: what it names, with the ancestors as the client saw them. Of a graft: the revision with its ancestors.
   */
  readonly paths?: readonly RevisionPath[]
  /** Of a graft: it brings a deletion. */
  readonly tombstone?: boolean
  endMs: number
  status: number
  outcome: Outcome
  /** It was answered that the write conflicts. */
  conflict: boolean
  /** Written, or read; undefined: unknown, or nothing was found. */
  revision: string | undefined
  /** Read: the value in the body, or the name of the content. */
  readValue: string | undefined
  /** Purge: the revisions that were removed. */
  removed: readonly string[] | undefined
  /** The database's incarnation as the node knew it when it took the request in, and when it answered. */
  incarnationBefore: string | undefined
  incarnationAfter: string | undefined
  /** Replicas of the document's range that counted when the node took the request in. */
  activeBefore: number
  /** Whether anything was wrong with the cluster between some time before the start and the end. */
  calm: boolean
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
      outcome: 'unknown', conflict: false, revision: undefined, readValue: undefined, removed: undefined,
      incarnationBefore: undefined, incarnationAfter: undefined, activeBefore: 0, calm: false,
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
    this.#world.say(`${operation.client} < #${operation.number} ${outcome} ${status} ${operation.revision ?? ''} ${operation.readValue ?? ''} ${said}`)
  }
}

/** The database as a node knows it now. */
export function databaseRecord(node: SimulatedNode, database: string): DatabaseRecord | undefined {
  const control: ControlPlane | undefined = node.inside?.control
  return control?.state()?.databases.get(database)
}

export function shardOf(record: DatabaseRecord, id: string): ShardRecord {
  const hash = documentHash(id, record.partitioned)
  return record.shards.find(shard => rangeContains(shard.range, hash))!
}
