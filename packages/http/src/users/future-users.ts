/**
 * The users database before it exists. Handlers get it in place of a database when a server administrator writes to
 * `_users`, and the first write that would not be refused creates it. So a request that fails leaves nothing behind.
 */
import { ApiError, designPrefix } from '@sectional/core'
import {
  adminOnlySecurity, userDocumentRefusal, usersDatabase, type Coordinator, type DatabaseRecord, type WriteOptions,
  type WriteOutcome,
} from '@sectional/cluster'
import type { Turns } from '@sectional/runtime'
import { withMembers } from './user-document-body.ts'

export class FutureUsers implements DatabaseRecord {
  readonly name = usersDatabase
  readonly incarnation = 'not created'
  readonly partitioned = false
  readonly n = 0
  readonly shards = []
  readonly security = adminOnlySecurity
  readonly revsLimit = 0
  readonly purgedInfosLimit = 0
  readonly autoPurge = {}
  readonly #create: () => Promise<DatabaseRecord | undefined>
  #created: Promise<DatabaseRecord | undefined> | undefined

  /** @param create returns undefined when the database must not be created */
  constructor(create: () => Promise<DatabaseRecord | undefined>) {
    this.#create = create
  }

  /** Creates the database once. @throws ApiError `database_missing` when it must not be created */
  async create(): Promise<DatabaseRecord> {
    const created = await (this.#created ??= this.#create())
    if (created === undefined) throw new ApiError('database_missing')
    return created
  }
}

/** Call this before an option of a database is changed. */
export async function createDatabaseOf(db: DatabaseRecord): Promise<void> {
  if (db instanceof FutureUsers) await db.create()
}

/**
 * Operations that create the database in any case, such as storing the content of an attachment, which precedes the
 * write of its document. All others find no database.
 */
const creating: ReadonlySet<string> = new Set(['updateLocalDocument', 'writeBlob'])

/** Returns the coordinator for requests whose database is `FutureUsers`. */
export function withFutureUsers(coordinator: Coordinator, turns: Turns): Coordinator {
  const wrapped = Object.create(coordinator) as Coordinator & Record<string, Operation>
  for (const [name, operation] of Object.entries(coordinator) as [string, Operation | undefined][]) {
    if (typeof operation !== 'function') continue
    wrapped[name] = async (db, ...rest) => {
      if (!creating.has(name)) throw new ApiError('database_missing')
      return operation.call(coordinator, await existing(db), ...rest)
    }
  }
  wrapped.updateDocuments = async (db, writes, options, context) =>
    await refusals(writes, options, turns, ({ parent }) => parent !== null)
      ?? coordinator.updateDocuments(await existing(db), writes, options, context)
  wrapped.storeRevisions = async (db, writes, options, context) =>
    await refusals(writes, options, turns, () => false)
      ?? coordinator.storeRevisions(await existing(db), writes, options, context)
  return wrapped
}

type Operation = (db: DatabaseRecord, ...rest: readonly unknown[]) => unknown

async function existing(db: DatabaseRecord): Promise<DatabaseRecord> {
  return db instanceof FutureUsers ? db.create() : db
}

interface Write { readonly id: string; readonly deleted: boolean; readonly body: Uint8Array }

/** Returns the outcomes of writes to the empty database, or null when one of them may succeed. */
async function refusals<Of extends Write>(
  writes: readonly Of[], { user }: WriteOptions, turns: Turns, hasParent: (write: Of) => boolean,
): Promise<readonly WriteOutcome[] | null> {
  const outcomes: WriteOutcome[] = []
  for (const write of writes) {
    const outcome: WriteOutcome | null = hasParent(write) ? { kind: 'conflict' }
      : await refusalByRules(write, user, turns)
    if (outcome === null) return null
    outcomes.push(outcome)
  }
  return outcomes
}

async function refusalByRules(
  { id, deleted, body }: Write, user: WriteOptions['user'], turns: Turns,
): Promise<WriteOutcome | null> {
  if (id.startsWith(designPrefix)) return null
  const document = withMembers({ _id: id, ...deleted && { _deleted: true } }, body)
  const context = [{ name: user?.name ?? null, roles: user?.roles ?? [] }, adminOnlySecurity]
  const list = [Buffer.from('['), document, Buffer.from(`,null,${context.map(each => JSON.stringify(each)).join()}]`)]
  const reason = await turns.run(userDocumentRefusal(Buffer.concat(list)))
  return reason === null ? null : { kind: 'error', error: 'forbidden', reason, status: 403 }
}
