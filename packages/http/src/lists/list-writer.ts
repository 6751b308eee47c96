/**
 * Writes the rows of a list or a view in CouchDB's format: `\r\n` between rows, and the same order of members in the
 * head.
 */
import type { SplicedDocument, ViewReduceFailure } from '@sectional/core'
import type { JsonWriter } from '../messages/json-writer.ts'
import { viewRowBytesMax, writeViewRow } from './view-row-bytes.ts'

export type DocumentWriter = (writer: JsonWriter) => Promise<void> | undefined

/** The members before the rows; undefined ones are left out. Reduced rows have no total and no offset. */
export interface ListHead {
  readonly total?: number | null
  readonly offset?: number | null
  /** Present when the request asks for it; null for documents that are listed by `keys`. */
  readonly updateSequence?: string | null
}

/** A row of a list of documents, or one in place of a document that a key does not find. */
export type DocumentRow =
  | {
    readonly id: string
    readonly revision: string
    readonly deleted: boolean
    /** As for `ListWriter.viewRow`. */
    readonly doc: SplicedDocument | DocumentWriter | null | undefined
  }
  | { readonly unknown: unknown }

export class ListWriter {
  readonly #writer: JsonWriter
  #rows = 0

  constructor(writer: JsonWriter, head: ListHead) {
    this.#writer = writer
    const { total, offset, updateSequence } = head
    const members = JSON.stringify({ total_rows: total, offset, update_seq: updateSequence }).slice(0, -1)
    writer.text(`${members}${members === '{' ? '' : ','}"rows":[\r\n`)
  }

  /** Writes the row of a document, as `_all_docs` has it. */
  row(row: DocumentRow): Promise<void> | undefined {
    return this.#row(documentRowMembers(row), 'unknown' in row ? undefined : row.doc)
  }

  /**
   * Writes a row of a view.
   *
   * @param key JSON text, as is `value`
   * @param doc undefined: no member `doc`; null: there is no such document; a function writes a document that does not
   * fit into memory
   */
  viewRow(
    id: string, key: string, value: string, doc: SplicedDocument | DocumentWriter | null | undefined,
  ): Promise<void> | undefined {
    return this.#row(viewRowMembers(id, key, value), doc)
  }

  /** Writes a row of a view without a document. @param row as the index stores it (`encodeViewRow`) */
  storedRow(id: string, row: Uint8Array): Promise<void> | undefined {
    const isFirst = this.#rows++ === 0
    this.#writer.put(viewRowBytesMax(id, row), (buffer, at) => writeViewRow(buffer, at, id, row, isFirst))
    return this.#writer.flushFull()
  }

  /** Writes a reduced row. @param key JSON text, as is `value` */
  groupRow(key: string, value: string): Promise<void> | undefined {
    return this.#row(groupMembers(key, value), undefined)
  }

  /** Writes a row in place of one that could not be reduced (`failedGroupMembers`). */
  failedGroup(key: string, failure: ViewReduceFailure): Promise<void> | undefined {
    return this.#row(failedGroupMembers(key, failure), undefined)
  }

  /** @param members the beginning of the row, without its end and without the document */
  #row(members: string, doc: SplicedDocument | DocumentWriter | null | undefined): Promise<void> | undefined {
    const row = this.#begin() + members
    this.#writer.text(doc === undefined ? row : `${row},"doc":`)
    if (typeof doc === 'function') return this.#writeDocument(doc)
    if (doc === null) this.#writer.text('null')
    else if (doc !== undefined) this.#writer.document(doc)
    this.#writer.text('}')
    return this.#writer.flushFull()
  }

  async #writeDocument(write: DocumentWriter): Promise<void> {
    await write(this.#writer)
    this.#writer.text('}')
    await this.#writer.flushFull()
  }

  end(): void {
    this.#writer.text('\r\n]}')
  }

  /** Returns the separator before a row. */
  #begin(): string {
    return this.#rows++ > 0 ? ',\r\n' : ''
  }
}

/** Returns the beginning of a row of a list of documents, without its end. */
export function documentRowMembers(row: DocumentRow): string {
  if ('unknown' in row) return `{"key":${JSON.stringify(row.unknown)},"error":"not_found"`
  const key = JSON.stringify(row.id)
  const end = row.deleted ? ',"deleted":true}' : '}'
  return `{"id":${key},"key":${key},"value":{"rev":${JSON.stringify(row.revision)}${end}`
}

/** Returns the beginning of a row of a view, without its end. @param key JSON text, as is `value` */
export function viewRowMembers(id: string, key: string, value: string): string {
  return `{"id":${JSON.stringify(id)},"key":${key},"value":${value}`
}

/** Returns the beginning of a reduced row, without its end. @param key JSON text, as is `value` */
export function groupMembers(key: string, value: string): string {
  return `{"key":${key},"value":${value}`
}

/**
 * Returns the beginning of a row that could not be reduced, without its end. As in CouchDB, it is the value null with
 * the key if the reduce function threw, and an error without the key if the result was too large. CouchDB has no rows
 * for other errors, such as a timeout.
 */
export function failedGroupMembers(key: string, { error, reason }: ViewReduceFailure): string {
  if (error === 'reduce_error') return groupMembers(key, 'null')
  const place = error === 'reduce_overflow_error' ? '"key":null' : `"key":${key},"value":null`
  return `{${place},"error":${JSON.stringify(error)},"reason":${JSON.stringify(reason)}`
}
