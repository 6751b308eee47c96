import type { MediaTypes, Offer } from './media-types.ts'
import type { RespondCall } from './respond-text.ts'

interface ReturnedMembers { readonly headers?: object; readonly [name: string]: unknown }

/**
 * The response that a show or list function is making. The source text of this class is evaluated inside the context of
 * a design document, like the functions of `environment.ts`. A design document that replaces built-in functions changes
 * its own responses only.
 */
export class OpenResponse {
  /** The rows of a list function, as lines of JSON. */
  readonly #rows: string
  /** Where the next row begins in `#rows`. */
  #rowAt: number
  readonly #call: RespondCall
  readonly #lengthMax: number
  #body = ''
  /** What `start` received last, before a row was read with a body that was not empty. */
  #started: unknown
  #isBegun = false
  readonly #offers: Offer[] = []
  readonly #mediaTypes: MediaTypes
  /** True when the body exceeded `#lengthMax`. The call fails, even if the function goes on. */
  isTooLong = false
  /** True when the function asked for rows that it was not given. The call fails, even if the function goes on. */
  isRowMissing = false

  /**
   * @param rows text whose lines from `rowAt` on are the rows
   * @param lengthMax length of the body
   */
  constructor(call: RespondCall, rows: string, rowAt: number, lengthMax: number, mediaTypes: MediaTypes) {
    this.#call = call
    this.#rows = rows
    this.#rowAt = rowAt
    this.#lengthMax = lengthMax
    this.#mediaTypes = mediaTypes
  }

  provides(format: unknown, render: unknown): void {
    this.#offers.push({ format: `${format}`, render })
  }

  registerType(format: unknown, mediaTypes: readonly unknown[]): void {
    this.#mediaTypes.register(`${format}`, mediaTypes.map(String))
  }

  start(response: unknown): void {
    if (!this.#isBegun) this.#started = response
  }

  send(chunk: unknown): void {
    const text = `${chunk}`
    if (this.#body.length + text.length > this.#lengthMax) {
      this.isTooLong = true
      throw new Error('The response is too long.')
    }
    this.#body += text
  }

  getRow(): unknown {
    this.#isBegun ||= this.#body !== ''
    if (this.#rowAt < this.#rows.length) {
      const end = this.#rows.indexOf('\n', this.#rowAt)
      const row = this.#rows.slice(this.#rowAt, end)
      this.#rowAt = end + 1
      return JSON.parse(row) as unknown
    }
    const { rowsLeft } = this.#call
    if (rowsLeft === undefined) return null
    this.isRowMissing = true
    throw rowsLeft
  }

  /** Returns the response object of a function. @param invoke calls a function */
  make(called: unknown, invoke: (called: unknown, argumentList: readonly unknown[]) => unknown): unknown {
    const { argumentList, isList } = this.#call
    const result = invoke(called, argumentList)
    // As in CouchDB, a show function's result is sent before that of `provides`, which replaces a list function's one.
    const own = isList ? this.#offers.length > 0 ? undefined : result : this.#shown(result)
    let made = this.#merged({}, own)
    const selected = this.#offers.length > 0 ? this.#mediaTypes.select(this.#offers, argumentList[1]) : undefined
    if (selected !== undefined) made = this.#merged(made, invoke(selected.render, []))
    const response = this.#opened(made, isList)
    if (selected === undefined) return { ...response, body: this.#body || undefined }
    const typed = { 'Content-Type': selected.mediaType, ...response.headers }
    return { ...response, headers: typed, body: this.#body || undefined }
  }

  /**
   * Adds what `start` received. As in CouchDB, it is a response object in list functions, and an object of headers in
   * show functions, which also may have the members `code` and `headers` of a response object.
   */
  #opened(made: ReturnedMembers, isList: boolean): ReturnedMembers {
    const { headers, code, body, json, base64, stop, ...others } =
      Object(this.#started) as Readonly<Record<string, unknown>>
    const all = { ...headers as object | undefined, ...made.headers }
    return isList ? { ...others, code, ...made, headers: all } : { code, ...made, headers: { ...all, ...others } }
  }

  /** Returns the result of a show function. As in CouchDB, 0 and false are none, and other such values an error. */
  #shown(result: unknown): unknown {
    const isRefused = typeof result === 'number' || typeof result === 'boolean' || typeof result === 'function'
    if (!isRefused && !Array.isArray(result)) return result
    if (result) throw ['error', 'render_error', 'undefined response from show function']
    return undefined
  }

  /** Adds what a function returned: a text to the body, the members of an object to the response object. */
  #merged(response: ReturnedMembers, returned: unknown): ReturnedMembers {
    if (returned === undefined || returned === null) return response
    if (typeof returned !== 'object') {
      this.send(returned)
      return response
    }
    const { headers = {}, body, ...members } = returned as { readonly headers?: unknown; readonly body?: unknown }
    if (typeof body === 'string') this.send(body)
    else if (body !== undefined && body !== null) throw new TypeError('The body of a response is a text.')
    if (typeof headers !== 'object') throw new TypeError('The headers of a response are an object.')
    return { ...response, ...members, headers: { ...response.headers, ...headers } }
  }
}
