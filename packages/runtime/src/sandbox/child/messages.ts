/**
 * The messages between a node and one of its sandbox processes. Each is a frame: two lengths as 32-bit little-endian
 * numbers, a header as JSON, and a body. The child first sends `Hello`, and then one `Reply` for each `Request`.
 */
import type { RunKind } from '../functions/environment.ts'

/** Tells whether the child can run functions. */
export interface Hello { readonly failure: LoadFailure | null }

/** Why isolated-vm cannot be loaded. */
export interface LoadFailure {
  readonly message: string
  /** True when this machine can never load it. False when that may succeed later, such as after a lack of memory. */
  readonly isFinal: boolean
}

export interface Request {
  /** New isolates. */
  readonly isolates: readonly { readonly id: number; readonly modules: string }[]
  /** New functions of isolates. The id is unique within the isolate. */
  readonly functions: readonly { readonly isolate: number; readonly id: number; readonly source: string }[]
  readonly calls: readonly RequestedCall[]
  /** Ids of isolates to dispose of after the calls, with their functions. */
  readonly drop: readonly number[]
}

export type CallKind = 'compile' | RunKind

export interface RequestedCall {
  readonly isolate: number
  readonly function: number
  readonly kind: CallKind
  /** Number of items. */
  readonly count: number
  /** Number of bytes of the items in the body (`Environment.run`). The items of the calls follow each other. */
  readonly bytes: number
}

/** The body contains the outcomes of the calls, in the order of the calls (`outcome-text.ts`). */
export interface Reply { readonly calls: readonly CallReply[] }

export type CallReply =
  | { readonly status: 'done'; readonly bytes: number }
  | {
    readonly status: 'compilation'
    readonly message: string
    readonly line: number | null
    readonly column: number | null
  }
  | { readonly status: 'memory' | 'too_large' | 'postponed' }
  | { readonly status: 'failed'; readonly message: string }

const prefixBytes = 8

/** Returns the buffers of one frame. */
export function frameOf(header: unknown, body: readonly Uint8Array[]): Buffer {
  const headerBytes = Buffer.from(JSON.stringify(header))
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32LE(headerBytes.length, 0)
  prefix.writeUInt32LE(body.reduce((total, part) => total + part.length, 0), 4)
  return Buffer.concat([prefix, headerBytes, ...body])
}

/** Bytes of a reader's memory that it keeps from one frame to the next. */
const keptBytes = 1024 * 1024

/** Takes frames out of a stream of bytes. */
export class FrameReader {
  readonly #bytesMax: number
  readonly #headerBytesMax: number
  readonly #onFrame: (header: unknown, body: Buffer) => void
  /** The first `#length` bytes are those of the frames that are not complete. It has room for `#needed` bytes. */
  #bytes = Buffer.allocUnsafe(prefixBytes)
  #length = 0
  /** The number of bytes that the next frame has, or its prefix as long as that is not complete. */
  #needed = prefixBytes

  /**
   * @param bytesMax number of bytes that a frame may have
   * @param headerBytesMax number of bytes that its header may have
   * @param onFrame may read the body only until it returns
   */
  constructor(bytesMax: number, headerBytesMax: number, onFrame: (header: unknown, body: Buffer) => void) {
    this.#bytesMax = bytesMax
    this.#headerBytesMax = headerBytesMax
    this.#onFrame = onFrame
  }

  /**
   * @param chunk is copied
   * @throws Error when a frame is too large, or its header is not JSON
   */
  push(chunk: Uint8Array): void {
    this.#reserve(this.#length + chunk.length)
    this.#bytes.set(chunk, this.#length)
    this.#length += chunk.length
    while (this.#length >= this.#needed) {
      const headerBytes = this.#bytes.readUInt32LE(0)
      const bodyAt = prefixBytes + headerBytes
      const frameBytes = bodyAt + this.#bytes.readUInt32LE(4)
      if (headerBytes > this.#headerBytesMax) {
        throw new Error(`A header of ${headerBytes} bytes exceeds ${this.#headerBytesMax}`)
      }
      if (frameBytes > this.#bytesMax) throw new Error(`A frame of ${frameBytes} bytes exceeds ${this.#bytesMax}`)
      this.#needed = frameBytes
      if (this.#length < frameBytes) return this.#reserve(frameBytes)
      this.#onFrame(JSON.parse(this.#bytes.toString('utf8', prefixBytes, bodyAt)),
        this.#bytes.subarray(bodyAt, frameBytes))
      this.#drop(frameBytes)
    }
  }

  #drop(frameBytes: number): void {
    const rest = this.#bytes.subarray(frameBytes, this.#length)
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.from(rest)
    else this.#bytes.set(rest)
    this.#length = rest.length
    this.#needed = prefixBytes
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(length)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
