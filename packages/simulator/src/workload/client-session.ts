/** What a client's actions use: the requests that they send, and what the client remembers of the answers. */
import type { RevisionPath } from '@sectional/core'
import type { SwarmOptions } from '../plan/swarm-options.ts'
import type { Answer, Content } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { AttachmentChanges, Operation, OperationKind, Outcome } from './history.ts'

/** What an answer means for one operation. */
export interface Reading {
  readonly outcome: Outcome
  readonly conflict?: boolean
  readonly revision?: string
  readonly readValue?: string
  /** Of a purge. */
  readonly removed?: readonly string[]
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

/** Something that a client does, to a document or a database. */
export interface ClientAction {
  readonly name: string
  /** Resolves when it is done; never rejects for what a node answers. */
  act(session: ClientSession, database: string, id: string): Promise<unknown>
}

export interface ClientSession {
  readonly name: string
  readonly dice: Dice
  readonly options: SwarmOptions
  /** One request, which may be several operations. */
  ask(
    database: string, method: string, target: string, payload: Payload, tasks: readonly Task[],
  ): Promise<readonly Operation[]>
  /** A request that is no operation: to look, before something is done. */
  look(method: string, target: string, json?: unknown): Promise<Answer>
  /** Draws a document's id; one document is drawn more often than the others. */
  documentId(): string
  /** The revision that the client takes for the newest. */
  known(database: string, id: string): string | undefined
  /** The revision that the client took for the newest before that one. */
  replaced(database: string, id: string): string | undefined
  remember(operation: Operation): void
  /** A value that no other operation has. */
  newValue(): string
  body(value: string): object
  /** `w` as a part of a query, or nothing. */
  quorum(separator: '?' | '&'): string
}

export interface Payload { readonly json?: unknown; readonly content?: Content }

export function outcomeOf(status: number): Outcome {
  if (status === 0) return 'unknown'
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
