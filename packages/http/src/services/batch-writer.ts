/**
 * Writes of `batch=ok`: answered before they are done. How many are open, and their bytes, are bounded: they are kept
 * by nothing else.
 */
import type { Log } from '@sectional/runtime'

export class BatchWriter {
  readonly #log: Log
  readonly #openMax: number
  readonly #bytesMax: number
  #bytes = 0
  readonly #open = new Set<Promise<void>>()
  readonly #signal = new AbortController().signal

  constructor(log: Log, openMax: number, bytesMax: number) {
    this.#log = log
    this.#openMax = openMax
    this.#bytesMax = bytesMax
  }

  get open(): number { return this.#open.size }

  /**
   * Starts the write of so many bytes with a context that outlives the request. Resolves at once while there is
   * room, otherwise when the write is done. Failures are logged, as there is nobody left to tell.
   */
  async accept(
    requestId: string, id: string, bytes: number,
    write: (context: { readonly requestId: string; readonly signal: AbortSignal }) => Promise<string | null>,
  ): Promise<void> {
    const running = this.#run(requestId, id, write)
    if (this.#open.size >= this.#openMax || this.#bytes + bytes > this.#bytesMax) return running
    this.#open.add(running)
    this.#bytes += bytes
    void running.then(() => {
      this.#open.delete(running)
      this.#bytes -= bytes
    })
  }

  async drain(): Promise<void> {
    await Promise.all(this.#open)
  }

  async #run(
    requestId: string, id: string,
    write: (context: { readonly requestId: string; readonly signal: AbortSignal }) => Promise<string | null>,
  ): Promise<void> {
    try {
      const refusal = await write({ requestId, signal: this.#signal })
      if (refusal !== null) this.#log.warn({ requestId, document: id, reason: refusal }, 'batched write refused')
    } catch (error) {
      this.#log.error({ requestId, document: id, error: error instanceof Error
        ? error.message
        : String(error) }, 'batched write failed')
    }
  }
}
