/** Bytes that wait for one replica before the source is held back. */
const waitingBytesMax = 256 * 1024

/** One replica's end of content that goes to several: chunks wait here until they are taken. */
export class ChunkBranch implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  #state: 'open' | 'ended' | 'failed' = 'open'
  #failure: unknown
  #left = false
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined

  /** The replica takes nothing more. */
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

  /** To be awaited before the next chunk; undefined: there is room. */
  room(): Promise<void> | undefined {
    return this.#isFull() ? this.#roomMade() : undefined
  }

  end(): void {
    this.#state = 'ended'
    this.#wakeReader?.()
  }

  /** The replica sees the failure as its source's. */
  fail(error: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'failed'
    this.#failure = error
    this.#wakeReader?.()
  }

  /** The replica is waited for no more. While the source goes on, what the replica has is not whole, and is to be thrown away. */
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
