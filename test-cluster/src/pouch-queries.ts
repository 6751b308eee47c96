/** PouchDB with its plugin for queries by selector, `pouchdb-find`. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Pouch, PouchDocument } from './pouch.ts'

export interface PouchIndex {
  readonly ddoc: string | null
  readonly name: string
  readonly type: string
  readonly def: { readonly fields: readonly object[] }
}

export interface FoundByPouch {
  readonly docs: readonly PouchDocument[]
  readonly bookmark?: string
  readonly warning?: string
}

export interface QueriedPouch extends Pouch {
  createIndex(definition: object): Promise<{ readonly result: string; readonly id: string; readonly name: string }>
  find(query: object): Promise<FoundByPouch>
  explain(query: object): Promise<{ readonly index: PouchIndex }>
  getIndexes(): Promise<{ readonly total_rows: number; readonly indexes: readonly PouchIndex[] }>
  deleteIndex(index: PouchIndex): Promise<{ readonly ok: boolean }>
}

/** @param place the URL of a database, or a folder for a database in LevelDB */
export function openQueriedPouch(place: string): QueriedPouch {
  const require = createRequire(import.meta.url)
  const PouchDB = require('pouchdb') as new (name: string) => QueriedPouch
  // The package contains the plugin as a script for browsers, which finds PouchDB and `self` among the globals.
  const source = readFileSync(require.resolve('pouchdb/dist/pouchdb.find.js'), 'utf8')
  new Function('PouchDB', 'self', source)(PouchDB, globalThis)
  return new PouchDB(place)
}
