import { ProtocolError } from './schema.ts'

/** Collects the raw bytes that follow a header, without copying them. */
export class PayloadWriter {
  readonly chunks: Uint8Array[] = []
  bytes = 0

  /** Appends bytes. Returns their length, which the caller puts into the header. */
  add(chunk: Uint8Array): number {
    if (chunk.length > 0) this.chunks.push(chunk)
    this.bytes += chunk.length
    return chunk.length
  }

  addOptional(chunk: Uint8Array | null | undefined): number | undefined {
    return chunk === null || chunk === undefined ? undefined : this.add(chunk)
  }
}

/** Reads the bytes that follow a header, in order. It returns views of the frame. */
export class PayloadReader {
  readonly #bytes: Uint8Array
  #offset = 0

  constructor(bytes: Uint8Array) { this.#bytes = bytes }

  /** Returns the next `length` bytes. @throws ProtocolError when fewer are left */
  take(length: number): Uint8Array {
    const end = this.#offset + length
    if (end > this.#bytes.length) throw new ProtocolError('payload is shorter than its header says')
    const chunk = this.#bytes.subarray(this.#offset, end)
    this.#offset = end
    return chunk
  }

  /** Like `take`, for an optional field of the header; null: the field is absent. */
  takeOptional(length: number | null): Uint8Array | undefined {
    return length === null ? undefined : this.take(length)
  }

  /** Number of bytes that were not taken yet. */
  get left(): number { return this.#bytes.length - this.#offset }

  rest(): Uint8Array { return this.take(this.left) }

  /** @throws ProtocolError when bytes are left over */
  finish(): void {
    if (this.left > 0) throw new ProtocolError('payload is longer than its header says')
  }
}
