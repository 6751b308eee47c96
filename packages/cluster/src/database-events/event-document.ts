/**
 * The documents behind `_db_updates`: one for each kind of event of each database name
 * (docs/reference/changes.md#get-_db_updates).
 */
import { isJsonObject, parseJson, revisionHash } from '@sectional/core'
import type { DocumentWrite, OpenedDocument } from '../contracts/coordinator.ts'

/** Where they are kept. */
export const eventsDatabase = '_global_changes'

export type EventKind = 'created' | 'updated' | 'deleted'

export interface DatabaseEvent { readonly kind: EventKind; readonly name: string }

const idForm = /^(created|updated|deleted):(.+)$/s

export function eventId({ kind, name }: DatabaseEvent): string {
  return `${kind}:${name}`
}

/** null: no event. */
export function parseEventId(id: string): DatabaseEvent | null {
  const found = idForm.exec(id)
  return found === null ? null : { kind: found[1] as EventKind, name: found[2]! }
}

/** Which life of the database the event was of. */
export function incarnationOf(body: Uint8Array | undefined): string | undefined {
  const value: unknown = body === undefined ? undefined : parseJson(body)
  const incarnation = isJsonObject(value) ? value['incarnation'] : undefined
  return typeof incarnation === 'string' ? incarnation : undefined
}

/** The write that records the event anew; null: it is recorded, and happens once in the life of a database. */
export function eventWrite(event: DatabaseEvent, incarnation: string, recorded: OpenedDocument | null): DocumentWrite | null {
  const winner = recorded?.leaves[0]
  const parent = winner === undefined || winner.deleted ? null : winner.revision
  if (parent !== null && event.kind !== 'updated' && incarnationOf(recorded?.body) === incarnation) return null
  const body = Buffer.from(JSON.stringify({ incarnation }))
  return { id: eventId(event), parent, deleted: false, body, revisionHash: revisionHash({ deleted: false, parent, body }) }
}
