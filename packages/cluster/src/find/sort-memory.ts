import { ApiError } from '@sectional/core'

/** The most bytes of documents that all sorts in memory of a node hold together. */
const sortsBytesMax = 256 * 1024 * 1024

/** Counts the bytes that the sorts in memory of a node hold. */
export class SortMemory {
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax = sortsBytesMax) {
    this.#bytesMax = bytesMax
  }

  /** The bytes that are held now. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * @param bytes that are held from now on; negative: that are no longer held
   * @throws ApiError `service_unavailable` when all sorts together hold too many; they are not counted then
   */
  hold(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.#bytesMax) {
      const reason = `The sorts in memory of this node hold the ${this.#bytesMax} bytes that they may hold together; `
        + 'create an index on the fields of the sort, or try again later.'
      throw new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '1' } })
    }
    this.#bytes += bytes
  }
}
