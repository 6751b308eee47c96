const KiB = 1024

/** A page of rows ends with the row that reaches one of these limits. */
export interface PageLimits { readonly pageRows: number; readonly pageBytes: number }

/** Limits below which pages do not shrink: each costs about as much as some rows. */
const least: PageLimits = { pageRows: 16, pageBytes: 4 * KiB }
/** Memory that a small row needs. */
const rowBytes = 512

/**
 * Limits the pages of all streams of rows of a node together. A stream holds a page until its reader has taken it,
 * which may be a slow client. While many streams are open, new ones get smaller pages: an equal share of the bytes.
 */
export class PageBudget {
  /** The limits while few streams are open. Streams that are read without pauses need no others. */
  readonly most: PageLimits
  readonly #bytesMax: number
  #open = 0

  /** @param most the limits while few streams are open @param bytesMax bytes of the pages of all streams */
  constructor(most: PageLimits, bytesMax: number) {
    this.most = most
    this.#bytesMax = bytesMax
  }

  /** Reads a stream, which counts as open from its first page on until it is closed. */
  async* hold<Page>(open: (limits: PageLimits) => AsyncIterable<Page>): AsyncGenerator<Page> {
    this.#open++
    try {
      yield* open(this.#limits())
    } finally {
      this.#open--
    }
  }

  #limits(): PageLimits {
    const share = this.#bytesMax / this.#open
    const { pageRows, pageBytes } = this.most
    return {
      pageRows: Math.min(pageRows, Math.max(least.pageRows, Math.floor(share / rowBytes))),
      pageBytes: Math.min(pageBytes, Math.max(least.pageBytes, Math.floor(share))),
    }
  }
}
