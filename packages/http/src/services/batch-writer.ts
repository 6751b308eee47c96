/**
 * Writes documents of `batch=ok`, which are acknowledged before they are written. Until then they exist only in memory,
 * so their number and bytes are limited.
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
   * Starts a write of `bytes` bytes with a context that outlives the request. Resolves at once while the limits allow
   * it, otherwise when the write has ended. Failures are logged, because the client has its answer already.
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
