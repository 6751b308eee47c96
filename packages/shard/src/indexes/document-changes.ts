/** What a page of changes does to the rows of an index: old rows against new ones. */
import type { ChangeRow, IndexDefinition } from '@sectional/core'
import { type Store, sealBytes, type Turns } from '@sectional/runtime'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { type IndexKeys, placeText } from './index-keys.ts'
import { decodeDocumentRows, decodeRow, type DocumentRows, type ListedRow, noRows } from './index-records.ts'
import type { Indexer, MappedDocument, MappedRow } from './indexer.ts'
import { documentDigest, type RowsDigest, subtractDigest } from './rows-digest.ts'
import type { RowChange } from './summary-update.ts'

/** A document with the result of the map function on its current revision. */
export interface CurrentDocument { readonly id: string; readonly result: MappedDocument }

export interface DocumentChange {
  readonly id: string
  readonly before: DocumentRows
  readonly after: DocumentRows
  /** The error of the map function. */
  readonly error: string | undefined
  /** The rows that differ. */
  readonly rows: readonly RowChange[]
  /** What the change adds to the digest of the index's rows; undefined when no row differs. */
  readonly digest: RowsDigest | undefined
  /** By how many bytes the keys and values of the document's rows grow; may be negative. */
  readonly externalBytes: number
  /** By how many bytes the records of the document grow; may be negative. */
  readonly activeBytes: number
}

const nothing: MappedDocument = { rows: [] }

/**
 * Bytes of rows of an index in the store from which on they are compared with no further document. The documents of one
 * page may have more than fits into memory.
 */
const storedBytesMax = 4 * 1024 * 1024

/** A document that is written while the changes are read may have two rows after a purge. The last one counts. */
export function lastOfEach(page: readonly ChangeRow[]): readonly ChangeRow[] {
  const last = new Map(page.map(row => [row.id, row]))
  return last.size === page.length ? page : page.filter(row => last.get(row.id) === row)
}

/**
 * Runs the map function on the live documents of a page. Deleted and purged ones have no rows.
 *
 * @param page the last row of each document
 * @returns the first documents of the page, at least one: as many as the indexer has mapped
 */
export async function mapDocuments(
  indexer: Indexer, definition: IndexDefinition, page: readonly ChangeRow[], signal: AbortSignal,
): Promise<readonly CurrentDocument[]> {
  const isLive = ({ purged, leaves }: ChangeRow): boolean => !purged && leaves[0]?.deleted === false
  const live = page.filter(isLive)
  const mapped = live.length === 0 ? [] : await indexer.map(definition, live, signal)
  const end = mapped.length < live.length ? page.indexOf(live[mapped.length]!) : page.length
  const results = mapped.values()
  return page.slice(0, end).map(row => ({ id: row.id, result: isLive(row) ? results.next().value! : nothing }))
}

/**
 * Compares the rows that documents have now with those in the store.
 *
 * @param isFirstScan whether no document has rows in the store
 * @returns the changes of the first documents, at least one
 */
export async function documentChanges(
  store: Store, keys: IndexKeys, documents: readonly CurrentDocument[], isFirstScan: boolean, turns: Turns,
): Promise<readonly DocumentChange[]> {
  if (isFirstScan) return turns.map(documents, ({ id, result }) => documentChange(id, noRows, [], result))
  const lists = (await store.getMany(documents.map(({ id }) => keys.document(id)))).map(decodeDocumentRows)
  let bytes = 0
  const end = lists.findIndex(list => (bytes += externalBytes(list)) > storedBytesMax)
  const first = end < 0 ? documents : documents.slice(0, Math.max(1, end))
  const stored = await storedRows(store, keys, first, lists)
  return turns.map(first, ({ id, result }, at) => documentChange(id, lists[at]!, stored[at]!, result))
}

/** Returns the rows of each document in the store. @param lists of these documents, and of others behind them */
async function storedRows(
  store: Store, keys: IndexKeys, documents: readonly CurrentDocument[], lists: readonly DocumentRows[],
): Promise<readonly (readonly MappedRow[])[]> {
  const places = documents.flatMap(({ id }, at) =>
    lists[at]!.rows.map(({ key }, number) => placeText({ key, id, number })))
  const records = await store.getMany(places.map(place => keys.row(place)))
  let at = 0
  return documents.map((_document, of) => lists[of]!.rows.map(({ key }): MappedRow => {
    const record = records[at]
    if (record === undefined) throw new DamagedRecordError('a row of an index is missing')
    return { key, value: decodeRow(places[at++]!, record) }
  }))
}

/** Divides changes into parts that end with the change that reaches `bytes`, since a document may have many rows. */
export function changesInParts(
  changes: readonly DocumentChange[], bytes: number,
): readonly (readonly DocumentChange[])[] {
  const parts: DocumentChange[][] = []
  let partBytes = Infinity
  for (const change of changes) {
    if (partBytes >= bytes) {
      parts.push([])
      partBytes = 0
    }
    parts.at(-1)!.push(change)
    for (const { place, value } of change.rows) partBytes += place.length + (value?.length ?? 0)
  }
  return parts
}

function documentChange(
  id: string, before: DocumentRows, stored: readonly MappedRow[], result: MappedDocument,
): DocumentChange {
  const rows: RowChange[] = []
  const listed: ListedRow[] = []
  const now = rowsOf(result)
  // Plain loops: a first build calls this for each document, and iterators cost as much as the rest.
  for (let number = 0; number < now.length; number++) {
    const { key, value } = now[number]!
    listed.push({ key, valueBytes: value.length })
    const old = stored[number]
    const isUnchanged = old !== undefined && old.key === key && Buffer.compare(old.value, value) === 0
    if (!isUnchanged) rows.push({ place: placeText({ key, id, number }), value })
  }
  for (let number = 0; number < before.rows.length; number++) {
    const { key } = before.rows[number]!
    if (key !== now[number]?.key) rows.push({ place: placeText({ key, id, number }), value: null })
  }
  const after: DocumentRows = { failed: result.error !== undefined, rows: listed }
  return {
    id, before, after, rows, error: result.error,
    digest: rows.length === 0 ? undefined : subtractDigest(documentDigest(id, now), documentDigest(id, stored)),
    externalBytes: externalBytes(after) - externalBytes(before),
    activeBytes: activeBytes(id, after) - activeBytes(id, before),
  }
}

function rowsOf(result: MappedDocument): readonly MappedRow[] {
  return result.error === undefined ? result.rows : []
}

function externalBytes({ rows }: DocumentRows): number {
  return rows.reduce((sum, { key, valueBytes }) => sum + key.length + valueBytes, 0)
}

/** Estimates the bytes of a document's rows and of the record that lists them. */
function activeBytes(id: string, { rows, failed }: DocumentRows): number {
  if (rows.length === 0 && !failed) return 0
  const record = id.length + sealBytes
  return rows.reduce((sum, { key, valueBytes }) => sum + record + 2 * key.length + valueBytes, record)
}
