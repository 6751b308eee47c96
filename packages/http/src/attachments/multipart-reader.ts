/** Streaming parser of multipart bodies (RFC 2046): parts one after the other, their bytes as they come. */
import { ApiError } from '@sectional/core'

/** Bytes of the headers of one part. */
const headBytesMax = 16 * 1024
/** Bytes of a boundary (RFC 2046 5.1.1). */
const boundaryBytesMax = 70

export interface Part {
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  /** To be read to the end before the next part is asked for; what was not read is skipped. */
  readonly body: AsyncIterable<Uint8Array>
}

/** The boundary that a content type names; null: none that can be used. */
export function boundaryOf(contentType: string): string | null {
  const match = /;\s*boundary=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(contentType)
  const boundary = match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2]
  return boundary === undefined || boundary === '' || Buffer.byteLength(boundary) > boundaryBytesMax ? null : boundary
}

export class MultipartReader {
  readonly #source: AsyncIterator<Uint8Array>
  readonly #delimiter: Buffer
  /** What came and was not given out; begins behind a line break, as if the body did. */
  #buffer: Buffer = Buffer.from('\r\n')
  #ended = false
  /** Counts the parts: a body that is still held when the next part was asked for gives nothing more. */
  #part = 0
  #state: 'preamble' | 'part' | 'between' | 'end' = 'preamble'

  constructor(chunks: AsyncIterable<Uint8Array>, boundary: string) {
    this.#source = chunks[Symbol.asyncIterator]()
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /**
   * The next part, or null behind the last one.
   * @throws ApiError `bad_request` when the body is not well-formed or ends too early
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

  /** Reads what stands behind the last part, so that the connection can be used again. */
  async finish(): Promise<void> {
    while (await this.next() !== null) continue
    while (await this.#fill()) this.#buffer = Buffer.alloc(0)
  }

  /** Bytes up to the next delimiter. */
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
      // The delimiter may have begun at the end of what is here.
      const safe = this.#buffer.length - delimiter.length + 1
      if (safe > 0) {
        const content = this.#buffer.subarray(0, safe)
        this.#buffer = this.#buffer.subarray(safe)
        yield content
      }
      if (!await this.#fill()) throw malformed('the body ends before the closing boundary')
    }
  }

  /** Whether the delimiter that was just read is the last one. */
  async #closes(): Promise<boolean> {
    while (this.#buffer.length < 2) if (!await this.#fill()) throw malformed('the body ends in a boundary')
    if (this.#buffer[0] !== 0x2d || this.#buffer[1] !== 0x2d) return false
    this.#state = 'end'
    return true
  }

  async #head(): Promise<ReadonlyMap<string, string>> {
    // The line of the delimiter may carry blanks; then headers, which may be missing, and an empty line.
    const lineEnd = await this.#find('\r\n', 0)
    if (!/^[ \t]*$/.test(this.#buffer.toString('latin1', 0, lineEnd))) {
      throw malformed('something stands behind a boundary')
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
      if (!await this.#fill()) throw malformed('the body ends in the headers of a part')
    }
  }

  /** False at the end of the source. */
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

/** A parameter of a header, such as `filename` of Content-Disposition. */
export function headerParameter(header: string | undefined, name: string): string | undefined {
  const match = header === undefined
    ? null
    : new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(header)
  return match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2]
}

function malformed(what: string): ApiError {
  return new ApiError('bad_request', `The multipart body is malformed: ${what}`)
}
