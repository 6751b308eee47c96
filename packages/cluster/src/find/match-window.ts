import type { FoundDocument } from '@sectional/core'
import type { MatchPosition } from '../contracts/find-query.ts'

/** Leaves matches out at the beginning, ends with the last one that the client wants, and remembers its position. */
export class MatchWindow {
  readonly #matches: AsyncIterable<readonly FoundDocument[]>
  readonly #skip: number
  readonly #limit: number
  #lastPosition: MatchPosition | undefined

  /** @param window `limit` null: all matches behind the first `skip` */
  constructor(
    matches: AsyncIterable<readonly FoundDocument[]>,
    { skip, limit }: { readonly skip: number; readonly limit: number | null },
  ) {
    this.#matches = matches
    this.#skip = skip
    this.#limit = limit ?? Infinity
  }

  /** The position of the last match that was left out or returned. */
  get lastPosition(): MatchPosition | undefined {
    return this.#lastPosition
  }

  /** Returns the matches. Can be called once. Every page has at least one match. */
  async* pages(): AsyncGenerator<readonly FoundDocument[]> {
    let toSkip = this.#skip
    let left = this.#limit
    for await (const page of this.#matches) {
      const begin = Math.min(toSkip, page.length)
      const end = Math.min(page.length, begin + left)
      toSkip -= begin
      left -= end - begin
      const { range, key, id, number, value } = page[end - 1]!
      this.#lastPosition = { range, key, id, number, value }
      if (begin < end) yield page.slice(begin, end)
      if (left === 0) return
    }
  }
}
