/**
 * The messages between a node and one of its sandbox processes. Each is a frame: two lengths as 32-bit little-endian
 * numbers, a header as JSON, and a body. The child first sends `Hello`, and then one `Reply` for each `Request`.
 */
import type { RunKind } from '../functions/environment.ts'

/** Tells whether the child can run functions. */
export interface Hello { readonly unsupported: string | null }

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

/** Takes frames out of a stream of bytes. */
export class FrameReader {
  readonly #bytesMax: number
  readonly #onFrame: (header: unknown, body: Buffer) => void
  #chunks: Buffer[] = []
  #bytes = 0
  /** The number of bytes that the next frame has, or its prefix as long as that is not complete. */
  #needed = prefixBytes

  /** @param bytesMax number of bytes that a frame may have */
  constructor(bytesMax: number, onFrame: (header: unknown, body: Buffer) => void) {
    this.#bytesMax = bytesMax
    this.#onFrame = onFrame
  }

  /** @throws Error when a frame is too large, or its header is not JSON */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    while (this.#bytes >= this.#needed) {
      const received = this.#chunks.length === 1 ? this.#chunks[0] as Buffer : Buffer.concat(this.#chunks)
      this.#chunks = [received]
      const headerBytes = received.readUInt32LE(0)
      const frameBytes = prefixBytes + headerBytes + received.readUInt32LE(4)
      if (frameBytes > this.#bytesMax) throw new Error(`A frame of ${frameBytes} bytes exceeds ${this.#bytesMax}`)
      if (received.length < frameBytes) {
        this.#needed = frameBytes
        return
      }
      const rest = received.subarray(frameBytes)
      this.#chunks = rest.length > 0 ? [rest] : []
      this.#bytes = rest.length
      this.#needed = prefixBytes
      const bodyAt = prefixBytes + headerBytes
      this.#onFrame(JSON.parse(received.toString('utf8', prefixBytes, bodyAt)), received.subarray(bodyAt, frameBytes))
    }
  }
}
