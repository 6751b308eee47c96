import type { IncomingMessage } from 'node:http'

/** The limit for the heads of one connection. Clients that pipeline requests hardly ever have many large ones. */
const connectionBytesMax = 256 * 1024
/** The limit for the heads of all connections. */
const allBytesMax = 64 * 1024 * 1024
/** The head of a connection's current request is not counted up to this size. */
const uncountedBytesMax = 4 * 1024

/**
 * The memory of the request lines and headers of requests that are not answered yet. Clients can send many requests
 * and read no answer, so that their memory is not bounded by the number of requests that are handled at a time.
 */
export class RequestHeads {
  #allBytes = 0
  /** Bytes by socket. */
  readonly #connections = new WeakMap<object, number>()

  /**
   * Counts the head of a request.
   *
   * @param waits whether the request waits until earlier ones of its connection are answered
   * @returns the function to call once when the request is answered; null when a limit is exceeded, and the connection
   * must be closed
   */
  begin(request: RequestHead, waits: boolean): (() => void) | null {
    const bytes = sizeOf(request)
    if (bytes <= uncountedBytesMax && !waits) return uncounted
    const { socket } = request
    const ofConnection = (this.#connections.get(socket) ?? 0) + bytes
    if (ofConnection > connectionBytesMax || this.#allBytes + bytes > allBytesMax) return null
    this.#connections.set(socket, ofConnection)
    this.#allBytes += bytes
    return () => {
      this.#connections.set(socket, this.#connections.get(socket)! - bytes)
      this.#allBytes -= bytes
    }
  }
}

export type RequestHead = Pick<IncomingMessage, 'rawHeaders' | 'url'> & { readonly socket: object }

const uncounted = (): void => {}

/** Returns the size of a request line with its headers in bytes, without separators. */
function sizeOf({ rawHeaders, url = '' }: RequestHead): number {
  let bytes = url.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}
