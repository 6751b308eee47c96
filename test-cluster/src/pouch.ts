/** Types of the part of PouchDB that tests use, because the package has none. */
import { createRequire } from 'node:module'
import type { EventEmitter } from 'node:events'
import type { BulkGetAnswer, ChangesAnswer, ReadableDatabase } from './database-contents.ts'

export interface PouchDocument {
  readonly _id: string
  readonly _rev?: string
  readonly _deleted?: boolean
  readonly [member: string]: unknown
}

export interface Pouch {
  get(id: string): Promise<PouchDocument>
  put(document: PouchDocument): Promise<{ readonly rev: string }>
  remove(id: string, rev: string): Promise<unknown>
  bulkDocs(documents: readonly PouchDocument[]): Promise<readonly { readonly error?: unknown }[]>
  putAttachment(id: string, name: string, rev: string, data: Buffer, type: string): Promise<unknown>
  allDocs(): Promise<{ readonly rows: readonly { readonly id: string }[] }>
  changes(options: object): Promise<ChangesAnswer>
  bulkGet(options: object): Promise<BulkGetAnswer>
  sync(url: string, options: object): PouchSync
  close(): Promise<void>
}

/** Resolves when both directions have ended. */
export interface PouchSync extends EventEmitter, PromiseLike<unknown> {
  cancel(): void
}

/** Opens a database in LevelDB, in a folder of its own. */
export function openPouch(folder: string): Pouch {
  const PouchDB = createRequire(import.meta.url)('pouchdb') as new (name: string) => Pouch
  return new PouchDB(folder)
}

export function localDatabase(pouch: Pouch): ReadableDatabase {
  return {
    changes: () => pouch.changes({ style: 'all_docs', since: 0 }),
    bulkGet: docs => pouch.bulkGet({ docs, revs: true, attachments: true }),
  }
}
