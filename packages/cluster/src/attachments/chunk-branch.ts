/** Bytes that may wait for one replica before the source must pause. */
const waitingBytesMax = 256 * 1024

/** One of several readers of the same content: chunks wait here until the replica takes them. */
export class ChunkBranch implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  #state: 'open' | 'ended' | 'failed' = 'open'
  #failure: unknown
  #left = false
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined

  /** True when the replica takes no more chunks. */
  get left(): boolean {
    return this.#left
  }

  leave(): void {
    this.#left = true
    this.#chunks.length = 0
    this.#bytes = 0
    this.#wakeWriter?.()
  }

  add(chunk: Uint8Array): void {
    if (this.#left) return
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    this.#wakeReader?.()
  }

  /** Resolves when there is room for the next chunk; undefined when there is room now. */
  room(): Promise<void> | undefined {
    return this.#isFull() ? this.#roomMade() : undefined
  }

  end(): void {
    this.#state = 'ended'
    this.#wakeReader?.()
  }

  /** Ends the content with an error, which the replica receives as an error of its source. */
  fail(error: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'failed'
    this.#failure = error
    this.#wakeReader?.()
  }

  /**
   * Gives up the replica while the source is not at its end. The content that the replica has is then incomplete, so
   * its upload fails and the content is discarded.
   */
  abandon(reason: unknown): void {
    if (this.#state !== 'open') return
    this.fail(reason)
    this.leave()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (this.#state === 'failed') throw this.#failure
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) {
        this.#bytes -= chunk.length
        if (!this.#isFull()) this.#wakeWriter?.()
        yield chunk
      } else if (this.#state === 'ended' || this.#left) return
      else await new Promise<void>(resolve => { this.#wakeReader = resolve })
      this.#wakeReader = undefined
    }
  }

  #isFull(): boolean {
    return !this.#left && this.#bytes >= waitingBytesMax
  }

  async #roomMade(): Promise<void> {
    while (this.#isFull()) await new Promise<void>(resolve => { this.#wakeWriter = resolve })
    this.#wakeWriter = undefined
  }
}
