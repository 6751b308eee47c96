/** Streaming parser of multipart bodies (RFC 2046). It returns the parts in order and their bytes as they arrive. */
import { ApiError } from '@sectional/core'

/** Maximum bytes of the headers of one part. */
const headBytesMax = 16 * 1024
/** Maximum bytes of a boundary (RFC 2046 5.1.1). */
const boundaryBytesMax = 70

export interface Part {
  /** Header values by name in lower case. */
  readonly headers: ReadonlyMap<string, string>
  /** The content of the part. Read it before calling `next`, which skips the bytes that were not read. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Returns the boundary of a content type, or null when it has none that is valid. */
export function boundaryOf(contentType: string): string | null {
  const match = /;\s*boundary=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(contentType)
  const boundary = match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2]
  return boundary === undefined || boundary === '' || Buffer.byteLength(boundary) > boundaryBytesMax ? null : boundary
}

export class MultipartReader {
  readonly #source: AsyncIterator<Uint8Array>
  readonly #delimiter: Buffer
  /**
   * Bytes that were received but not yet returned. It starts with a line break so that the first boundary is found like
   * the others.
   */
  #buffer: Buffer = Buffer.from('\r\n')
  #ended = false
  /** Number of the current part. The body of an earlier part ends at once when it is read after `next` was called. */
  #part = 0
  #state: 'preamble' | 'part' | 'between' | 'end' = 'preamble'

  constructor(chunks: AsyncIterable<Uint8Array>, boundary: string) {
    this.#source = chunks[Symbol.asyncIterator]()
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /**
   * Returns the next part, or null after the last one.
   * @throws ApiError `bad_request` when the body is malformed or ends too early
   */
  async next(): Promise<Part | null> {
    if (this.#state === 'preamble' || this.#state === 'part') {
      for await (const chunk of this.#content()) void chunk
    }
    if (this.#state === 'end' || await this.#closes()) return null
    const headers = await this.#head()
    this.#state = 'part'
    return { headers, body: this.#content(++this.#part) }
  }

  /** Reads the rest of the body, including the bytes after the last part, so that the connection can be reused. */
  async finish(): Promise<void> {
    while (await this.next() !== null) continue
    while (await this.#fill()) this.#buffer = Buffer.alloc(0)
  }

  /** Yields the bytes up to the next delimiter. */
  async* #content(part = this.#part): AsyncGenerator<Uint8Array, void, undefined> {
    const delimiter = this.#delimiter
    while (part === this.#part && (this.#state === 'preamble' || this.#state === 'part')) {
      const found = this.#buffer.indexOf(delimiter)
      if (found >= 0) {
        const content = this.#buffer.subarray(0, found)
        this.#buffer = this.#buffer.subarray(found + delimiter.length)
        this.#state = 'between'
        if (content.length > 0) yield content
        return
      }
      // The buffer may end with the beginning of a delimiter: keep that many bytes back.
      const safe = this.#buffer.length - delimiter.length + 1
      if (safe > 0) {
        const content = this.#buffer.subarray(0, safe)
        this.#buffer = this.#buffer.subarray(safe)
        yield content
      }
      if (!await this.#fill()) throw malformed('the body ends before the closing boundary')
    }
  }

  /** Returns whether the delimiter that was just read is the closing one. */
  async #closes(): Promise<boolean> {
    while (this.#buffer.length < 2) if (!await this.#fill()) throw malformed('the body ends within a boundary')
    if (this.#buffer[0] !== 0x2d || this.#buffer[1] !== 0x2d) return false
    this.#state = 'end'
    return true
  }

  async #head(): Promise<ReadonlyMap<string, string>> {
    // The rest of the delimiter's line may contain blanks. After it come the headers, if any, and an empty line.
    const lineEnd = await this.#find('\r\n', 0)
    if (!/^[ \t]*$/.test(this.#buffer.toString('latin1', 0, lineEnd))) {
      throw malformed('a boundary is followed by other text on its line')
    }
    this.#buffer = this.#buffer.subarray(lineEnd)
    const end = await this.#find('\r\n\r\n', 0)
    const text = this.#buffer.toString('utf8', 2, Math.max(2, end))
    this.#buffer = this.#buffer.subarray(end + 4)
    const headers = new Map<string, string>()
    for (const line of text.replace(/\r\n[ \t]+/g, ' ').split('\r\n')) {
      if (line === '') continue
      const colon = line.indexOf(':')
      if (colon <= 0) throw malformed('a header of a part has no colon')
      headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
    }
    return headers
  }

  async #find(mark: string, from: number): Promise<number> {
    for (;;) {
      const found = this.#buffer.indexOf(mark, from)
      if (found >= 0 && found <= headBytesMax) return found
      if (this.#buffer.length > headBytesMax) {
        throw malformed(`the headers of a part are longer than ${headBytesMax} bytes`)
      }
      if (!await this.#fill()) throw malformed('the body ends within the headers of a part')
    }
  }

  /** Appends the next chunk to the buffer. Returns false at the end of the source. */
  async #fill(): Promise<boolean> {
    if (this.#ended) return false
    const next = await this.#source.next()
    if (next.done) {
      this.#ended = true
      return false
    }
    this.#buffer = this.#buffer.length === 0
      ? Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length)
      : Buffer.concat([this.#buffer, next.value])
    return true
  }
}

/** Returns a parameter of a header value, such as `filename` of Content-Disposition. */
export function headerParameter(header: string | undefined, name: string): string | undefined {
  const match = header === undefined
    ? null
    : new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(header)
  return match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2]
}

function malformed(what: string): ApiError {
  return new ApiError('bad_request', `The multipart body is malformed: ${what}`)
}
