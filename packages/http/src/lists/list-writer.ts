/**
 * Writes the rows of a list in CouchDB's format: `\r\n` between rows, and the same order of members in the head.
 */
import type { SplicedDocument } from '@sectional/core'
import type { JsonWriter } from '../messages/json-writer.ts'

export type DocumentWriter = (writer: JsonWriter) => Promise<void> | undefined

export interface ListHead {
  readonly total: number | null
  readonly offset: number | null
  /** Present when the request asks for it; null with `keys`. */
  readonly updateSequence?: string | null
}

export class ListWriter {
  readonly #writer: JsonWriter
  #rows = 0

  constructor(writer: JsonWriter, head: ListHead) {
    this.#writer = writer
    const sequence = head.updateSequence === undefined ? '' : `,"update_seq":${JSON.stringify(head.updateSequence)}`
    writer.text(`{"total_rows":${head.total},"offset":${head.offset}${sequence},"rows":[\r\n`)
  }

  /**
   * Writes a row.
   * @param doc undefined: no member `doc`; null: the document is deleted; a function writes a document that does not
   * fit into memory
   */
  row(
    id: string, revision: string, deleted: boolean, doc: SplicedDocument | DocumentWriter | null | undefined,
  ): Promise<void> | undefined {
    const key = JSON.stringify(id)
    const end = deleted ? ',"deleted":true}' : '}'
    const row = `${this.#begin()}{"id":${key},"key":${key},"value":{"rev":${JSON.stringify(revision)}${end}`
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

  unknownKey(key: unknown): Promise<void> | undefined {
    this.#writer.text(`${this.#begin()}${JSON.stringify({ key, error: 'not_found' })}`)
    return this.#writer.flushFull()
  }

  end(): void {
    this.#writer.text('\r\n]}')
  }

  /** Returns the separator before a row. */
  #begin(): string {
    return this.#rows++ > 0 ? ',\r\n' : ''
  }
}
