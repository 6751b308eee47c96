import type { ReplicaError } from '@sectional/core'
import type { Clock, Timer } from '@sectional/runtime'
import { ProtocolError } from '../schema/schema.ts'

export interface ChunkQueueOptions {
  readonly clock: Clock
  /** Most bytes that may wait in the queue, plus one chunk. */
  readonly windowBytes: number
  /** Milliseconds without a chunk after which `onStalled` is called. */
  readonly stallMs: number
  /** Called with the number of bytes that the reader has taken. */
  readonly onTaken: (bytes: number) => void
  readonly onStalled: () => void
}

/** The receiving end of an upload. Chunks wait here until the reader takes them. */
export class ChunkQueue implements AsyncIterable<Uint8Array> {
  readonly #options: ChunkQueueOptions
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  #complete = false
  #failure: ReplicaError | undefined
  #wake: (() => void) | undefined
  #timer: Timer | undefined

  constructor(options: ChunkQueueOptions) { this.#options = options }

  /** @throws ProtocolError when the sender exceeds its window, or sends a chunk after the last one */
  add(chunk: Uint8Array, last: boolean): void {
    if (this.#complete) throw new ProtocolError('an upload continued after its end')
    if (this.#bytes >= this.#options.windowBytes && chunk.length > 0) {
      throw new ProtocolError('an upload exceeded its window')
    }
    if (chunk.length > 0) this.#chunks.push(chunk)
    this.#bytes += chunk.length
    this.#complete = last
    this.#continue()
  }

  fail(error: ReplicaError): void {
    this.#failure ??= error
    this.#chunks.length = 0
    this.#continue()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) {
        yield chunk
        this.#bytes -= chunk.length
        this.#options.onTaken(chunk.length)
      } else if (this.#complete) return
      else await this.#arrival()
    }
  }

  #arrival(): Promise<void> {
    const { clock, stallMs, onStalled } = this.#options
    return new Promise(resolve => {
      this.#wake = resolve
      this.#timer = clock.setTimer(stallMs, onStalled)
    })
  }

  #continue(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}
