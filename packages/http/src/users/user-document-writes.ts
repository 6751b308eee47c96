/**
 * The writes of user documents. All writes of the HTTP API go through the coordinator, so that no endpoint can omit
 * what happens here: other users' documents and local documents are refused, passwords are replaced by their hashes,
 * and the accounts that this node knows are read again. The coordinator then applies the rules of the content like
 * validation functions.
 */
import { ApiError, designPrefix, NamedMembers } from '@sectional/core'
import {
  hasUserDocuments, usersDatabase, type Coordinator, type DatabaseRecord, type DocumentWrite, type OperationContext,
  type WriteOptions, type WriteOutcome,
} from '@sectional/cluster'
import type { Turns } from '@sectional/runtime'
import type { Audit } from '../audit/audit.ts'
import type { Accounts } from '../authentication/accounts.ts'
import { isDatabaseAdmin } from '../authentication/authorization.ts'
import type { PasswordHasher } from '../authentication/password-hasher.ts'
import type { PasswordSource } from '../authentication/password-queue.ts'
import { ownerOf } from '../authentication/user-account.ts'
import { documentWrite } from '../documents/document-writing.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { PasswordRules } from './password-rules.ts'
import { withHash } from './user-document-body.ts'

export interface UserDocumentParts {
  readonly accounts: Pick<Accounts, 'forget'>
  readonly hasher: PasswordHasher
  readonly rules: PasswordRules
  readonly options: Pick<HttpOptions, 'passwordRules'>
  readonly audit: Audit
  readonly turns: Turns
}

/** Returns the coordinator with these rules for databases of users. Other databases are not affected. */
export function withUserDocuments(coordinator: Coordinator, parts: UserDocumentParts): Coordinator {
  const wrapped: Pick<
    Coordinator, 'updateDocuments' | 'storeRevisions' | 'updateLocalDocument' | 'purgeDocuments'
  > = {
    updateDocuments: (db, writes, options, context) => !hasUserDocuments(db.name)
      ? coordinator.updateDocuments(db, writes, options, context)
      : writeUsers(parts, db, writes, context, {
        isOwn: id => isOwn(db, id, options),
        refusal: write => anonymousRefusal(db, write, options),
        source: sourceOf(options),
        user: options.user?.name ?? null,
        withBody: ({ id, parent, deleted, attachments }, body) => documentWrite(id, parent, deleted, body, attachments),
        write: passed => coordinator.updateDocuments(db, passed, options, context),
      }),
    storeRevisions: (db, writes, options, context) => !hasUserDocuments(db.name)
      ? coordinator.storeRevisions(db, writes, options, context)
      : writeUsers(parts, db, writes, context, {
        isOwn: id => isOwn(db, id, options),
        refusal: () => replicationRefusal(db, options),
        source: sourceOf(options),
        user: options.user?.name ?? null,
        withBody: (write, body) => ({ ...write, body }),
        write: passed => coordinator.storeRevisions(db, passed, options, context),
      }),
    updateLocalDocument: async (db, write, options, context) => {
      if (hasUserDocuments(db.name)) requireLocalWriter(db, options)
      return coordinator.updateLocalDocument(db, write, options, context)
    },
    purgeDocuments: async (db, requests, options, context) => {
      try {
        return await coordinator.purgeDocuments(db, requests, options, context)
      } finally {
        forgetAll(parts, db, requests)
      }
    },
  }
  // All other operations are inherited.
  return Object.assign(Object.create(coordinator) as Coordinator, wrapped)
}

interface UserWrite { readonly id: string; readonly body: Uint8Array }

/** What differs between edits and revisions that come with their history. */
interface UserWriteKind<Write> {
  readonly isOwn: (id: string) => boolean
  /** Returns why a write is refused before its content is looked at. */
  readonly refusal: (write: Write) => WriteOutcome | null
  readonly source: PasswordSource
  /** Name of the client; null: anonymous. */
  readonly user: string | null
  readonly withBody: (write: Write, body: Uint8Array) => Write
  readonly write: (passed: readonly Write[]) => Promise<readonly WriteOutcome[]>
}

/**
 * Writes the documents that are not refused, and returns the outcomes of all in order. When one belongs to somebody
 * else, none is written, as in CouchDB.
 * @throws ApiError `missing`
 */
async function writeUsers<Write extends UserWrite>(
  parts: UserDocumentParts, db: DatabaseRecord, writes: readonly Write[], context: OperationContext,
  kind: UserWriteKind<Write>,
): Promise<readonly WriteOutcome[]> {
  const users = writes.filter(({ id }) => !id.startsWith(designPrefix))
  if (!users.every(({ id }) => kind.isOwn(id))) throw new ApiError('missing')
  const refusals = writes.map(write => write.id.startsWith(designPrefix) ? null : kind.refusal(write))
  const passed: Write[] = []
  for (const [index, write] of writes.entries()) {
    if (refusals[index] !== null) continue
    context.signal.throwIfAborted()
    // One after the other, so that a request with many documents leaves threads to others.
    const body = write.id.startsWith(designPrefix) ? null : await withoutPassword(parts, write.body, kind.source)
    passed.push(body === null ? write : kind.withBody(write, body))
  }
  try {
    const outcomes = passed.length === 0 ? [] : await kind.write(passed)
    if (db.name === usersDatabase) auditUsers(parts.audit, passed, outcomes, kind.user, context)
    const written = outcomes.values()
    return refusals.map(refusal => refusal ?? written.next().value!)
  } finally {
    forgetAll(parts, db, passed)
  }
}

function auditUsers(
  audit: Audit, writes: readonly { readonly id: string }[], outcomes: readonly WriteOutcome[], user: string | null,
  { requestId, clientAddress }: Pick<OperationContext, 'requestId' | 'clientAddress'>,
): void {
  const origin = { user, address: clientAddress ?? null, requestId }
  for (const [index, { id }] of writes.entries()) {
    if (outcomes[index]?.kind !== 'written') continue
    audit.record({ ...origin, event: 'user_changed', details: { document: id } })
  }
}

/** Forgets the accounts of written documents. Only those of `_users` are accounts. */
function forgetAll(
  { accounts }: UserDocumentParts, db: DatabaseRecord, documents: readonly { readonly id: string }[],
): void {
  if (db.name !== usersDatabase) return
  for (const { id } of documents) {
    const name = ownerOf(id)
    if (name !== null) accounts.forget(name)
  }
}

/** Users take turns (`PasswordQueue`), so many passwords that one user writes do not all precede those of others. */
function sourceOf({ user }: WriteOptions): PasswordSource {
  return { address: 'writes', name: user?.name ?? '', known: user !== undefined && user.name !== null }
}

const replicationForbidden = forbidden(
  'Only administrators may write revisions with their history to the users database.',
)

/** Users may write their own documents, and clients that are not logged in may register. */
function isOwn(db: DatabaseRecord, id: string, { user }: WriteOptions): boolean {
  return user === undefined || user.name === null || isDatabaseAdmin(user, db) || ownerOf(id) === user.name
}

/**
 * Clients that are not logged in may only create user documents. In `_users` the rules of the content say so, with
 * the same reasons.
 */
function anonymousRefusal(
  db: DatabaseRecord, { id, parent, deleted }: DocumentWrite, { user }: WriteOptions,
): WriteOutcome | null {
  if (db.name === usersDatabase || user === undefined || user.name !== null || isDatabaseAdmin(user, db)) return null
  if (deleted) return forbidden('Only admins may delete other user docs.')
  if ((ownerOf(id) ?? '') === '') return forbidden('Doc ID must be of the form org.couchdb.user:name')
  return parent === null ? null : forbidden('You may only update your own user document.')
}

function forbidden(reason: string): WriteOutcome {
  return { kind: 'error', error: 'forbidden', status: 403, reason }
}

/**
 * Local documents are for administrators, because no rules check their content. The node itself writes none of them.
 * @throws ApiError `not_server_admin`
 */
function requireLocalWriter(db: DatabaseRecord, { user }: WriteOptions): void {
  if (user === undefined || !isDatabaseAdmin(user, db)) throw new ApiError('not_server_admin')
}

/**
 * Revisions with their history are for administrators: a user could otherwise continue an old revision of their own
 * document that has more roles, and delete the branch of the present one.
 */
function replicationRefusal(db: DatabaseRecord, { user }: WriteOptions): WriteOutcome | null {
  return user === undefined || isDatabaseAdmin(user, db) ? null : replicationForbidden
}

const passwordMember = new NamedMembers(['password'])

/**
 * Returns the body of a document with the hash of its password instead of the password, or null when the document has
 * no such member. A password that is null is removed, and leaves the hash of the document as it is.
 * @throws ApiError `forbidden` when the password is not a string, `bad_request` when it breaks a rule,
 * `service_unavailable` when too many are waiting
 */
async function withoutPassword(
  { hasher, rules, options, turns }: UserDocumentParts, body: Uint8Array, source: PasswordSource,
): Promise<Uint8Array | null> {
  const member = (await turns.run(passwordMember.only(body))).toString()
  const { password } = JSON.parse(member) as { readonly password?: unknown }
  if (password === undefined) return null
  if (password === null) return turns.run(passwordMember.without(body))
  // CouchDB shows the value. It may be a password in another form, and reasons of refusals are in the audit stream.
  if (typeof password !== 'string') throw new ApiError('forbidden', 'Password value is invalid: it must be a string.')
  rules.check(password, options.passwordRules)
  return turns.run(withHash(body, await hasher.hash(password, source)))
}
