/**
 * The documents behind `_db_updates`: one for each kind of event and each database name
 * (docs/reference/changes.md#get-_db_updates).
 */
import { isJsonObject, parseJson, revisionHash } from '@sectional/core'
import type { DocumentWrite, OpenedDocument } from '../contracts/coordinator.ts'

/** The database that holds the events. */
export const eventsDatabase = '_global_changes'

export type EventKind = 'created' | 'updated' | 'deleted'

export interface DatabaseEvent { readonly kind: EventKind; readonly name: string }

const idForm = /^(created|updated|deleted):(.+)$/s

export function eventId({ kind, name }: DatabaseEvent): string {
  return `${kind}:${name}`
}

/** Returns null when the id is not that of an event. */
export function parseEventId(id: string): DatabaseEvent | null {
  const found = idForm.exec(id)
  return found === null ? null : { kind: found[1] as EventKind, name: found[2]! }
}

/** Returns the incarnation of the database in which the event happened; undefined when the body has none. */
export function incarnationOf(body: Uint8Array | undefined): string | undefined {
  const value: unknown = body === undefined ? undefined : parseJson(body)
  const incarnation = isJsonObject(value) ? value['incarnation'] : undefined
  return typeof incarnation === 'string' ? incarnation : undefined
}

/**
 * Returns the write that records the event; null when the event happens only once per incarnation and is recorded
 * already.
 */
export function eventWrite(
  event: DatabaseEvent, incarnation: string, recorded: OpenedDocument | null,
): DocumentWrite | null {
  const winner = recorded?.leaves[0]
  const parent = winner === undefined || winner.deleted ? null : winner.revision
  if (parent !== null && event.kind !== 'updated' && incarnationOf(recorded?.body) === incarnation) return null
  const body = Buffer.from(JSON.stringify({ incarnation }))
  const edit = { parent, deleted: false, body }
  return { id: eventId(event), ...edit, revisionHash: revisionHash(edit) }
}
