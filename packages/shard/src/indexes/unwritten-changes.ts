import type { DocumentChange } from './document-changes.ts'

/**
 * Entries and bytes from which on changes are written. LevelDB takes batches of 5,000 entries for a fifth less than
 * those of 640, but a batch is put together without a pause: 1,000 entries take about 1.5 ms.
 */
const batchEntriesMax = 1024
export const batchBytes = 1024 * 1024

/** What was taken: the changes in their order, and the sequence of the last one. */
export interface TakenChanges { readonly documents: readonly DocumentChange[]; readonly readSequence: number }

/**
 * Changes of documents that the first scan of an index has read and not yet written. So several pages of changes are
 * written as one batch. The first page is written at once, and then each batch may be twice as large as the one before,
 * so that a short scan shows its progress, and a scan that fails does not repeat much more than it has written.
 */
export class UnwrittenChanges {
  #documents: DocumentChange[] = []
  #readSequence = 0
  /** Rows, and records of documents. */
  #entries = 0
  #bytes = 0
  /** The number of entries of the next batch, or 0 before the first one. */
  #enough = 0

  get isEmpty(): boolean { return this.#documents.length === 0 }
  /** Whether there are enough changes for a batch. Take them then, so that their memory is bounded. */
  get isFull(): boolean { return this.#entries >= this.#enough || this.#bytes >= batchBytes }

  /** @param readSequence the sequence of the last of these changes */
  add(documents: readonly DocumentChange[], readSequence: number): void {
    this.#readSequence = readSequence
    for (const document of documents) {
      this.#documents.push(document)
      this.#entries += document.rows.length + 1
      this.#bytes += document.activeBytes + (document.error?.length ?? 0)
    }
  }

  /** Removes all changes, and returns them. */
  take(): TakenChanges {
    const taken = { documents: this.#documents, readSequence: this.#readSequence }
    this.#enough = Math.min(batchEntriesMax, 2 * this.#entries)
    this.#documents = []
    this.#entries = 0
    this.#bytes = 0
    return taken
  }

  /** Drops all changes. The next scan begins with small batches. */
  drop(): void {
    this.take()
    this.#enough = 0
  }
}
