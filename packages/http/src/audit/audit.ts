/** Security events that an operator can record (docs/operations.md#the-audit-stream). */

export const auditEventNames = [
  'authentication_failed', 'account_locked', 'permission_refused', 'configuration_changed', 'security_changed',
  'user_changed', 'database_created', 'database_changed', 'database_deleted', 'documents_purged', 'member_added',
  'member_changed', 'member_removed', 'replicas_changed',
] as const

export type AuditEventName = typeof auditEventNames[number]

/** The client that causes an event. */
export interface AuditOrigin {
  /** Null: anonymous, or not known. */
  readonly user: string | null
  /** Address of the client. Null: not known. */
  readonly address: string | null
  readonly requestId: string | null
}

export interface AuditEvent extends AuditOrigin {
  readonly event: AuditEventName
  /** They contain no secrets. Long texts are cut off. */
  readonly details: AuditDetails
}

export type AuditDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

export interface Audit {
  /** Records an event. It neither waits nor fails. */
  record(event: AuditEvent): void
}

/** The origin of events that no client causes, such as a node that joins. */
export const noOrigin: AuditOrigin = Object.freeze({ user: null, address: null, requestId: null })

/** Returns the origin of the events of a request. */
export function originOf(
  { user, clientAddress, requestId }: {
    readonly user: { readonly name: string | null }
    readonly clientAddress: string
    readonly requestId: string
  },
): AuditOrigin {
  return { user: user.name, address: clientAddress, requestId }
}
