/** What the actions of a client use: its requests, and what the client remembers of the answers. */
import type { RevisionPath } from '@sectional/core'
import type { SwarmOptions } from '../plan/swarm-options.ts'
import type { Answer, Content } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { AttachmentChanges, Operation, OperationKind, Outcome, ShownRow } from './history.ts'

/** The result of one operation, as read from an answer. */
export interface Reading {
  readonly outcome: Outcome
  readonly conflict?: boolean
  readonly revision?: string
  readonly readValue?: string
  /** For a purge: the revisions that were removed. */
  readonly removed?: readonly string[]
  readonly rows?: readonly ShownRow[]
}

export interface Task {
  readonly kind: OperationKind
  readonly id: string
  readonly value?: string
  readonly parent?: string | null
  readonly attachments?: AttachmentChanges
  readonly paths?: readonly RevisionPath[]
  readonly tombstone?: boolean
  readonly read: (answer: Answer) => Reading
}

/** An action of a client on a document or a database. */
export interface ClientAction {
  readonly name: string
  /** Resolves when the action is done. It never rejects because of an answer of a node. */
  act(session: ClientSession, database: string, id: string): Promise<unknown>
}

export interface ClientSession {
  readonly name: string
  readonly dice: Dice
  readonly options: SwarmOptions
  /** Sends one request, which may consist of several operations. */
  ask(
    database: string, method: string, target: string, payload: Payload, tasks: readonly Task[],
  ): Promise<readonly Operation[]>
  /** Sends a request that is not recorded as an operation, to look something up before an action. */
  look(method: string, target: string, json?: unknown): Promise<Answer>
  /** Draws a document's id. One document is drawn more often than the others. */
  documentId(): string
  /** Returns the revision that the client believes to be the newest. */
  known(database: string, id: string): string | undefined
  /** Returns the revision that the client believed to be the newest before that one. */
  replaced(database: string, id: string): string | undefined
  remember(operation: Operation): void
  /** Sends the next requests through a node that a partition separates from the others, if there is one. */
  moveToCutOff(): void
  /** Returns a value that no other operation has. */
  newValue(): string
  /** Returns a new value, or in some runs one that many operations have (`sharedValues`). */
  drawValue(): string
  body(value: string): object
  /** Returns `w` as part of a query, or an empty text. */
  quorum(separator: '?' | '&'): string
}

export interface Payload { readonly json?: unknown; readonly content?: Content }

const timeoutStatus = 408

export function outcomeOf(status: number): Outcome {
  if (status === 0 || status === timeoutStatus) return 'unknown'
  if (status === 202) return 'accepted'
  if (status < 300) return 'done'
  return status >= 500 || status === 409 ? 'unknown' : 'failed'
}

export function readWritten({ status, body }: Answer): Reading {
  const outcome = outcomeOf(status)
  return outcome === 'done' || outcome === 'accepted'
    ? { outcome, revision: body.rev }
    : { outcome, conflict: status === 409 }
}

/** Reads one row of the answer to a bulk request. */
export function readRow({ status, body }: Answer, index: number): Reading {
  const row = Array.isArray(body) ? body[index] : undefined
  if (row === undefined) return { outcome: outcomeOf(status) === 'failed' ? 'failed' : 'unknown' }
  if (row.ok !== true) {
    return { outcome: row.error === 'forbidden' ? 'failed' : 'unknown', conflict: row.error === 'conflict' }
  }
  return { outcome: row.accepted === true ? 'accepted' : 'done', revision: row.rev }
}
