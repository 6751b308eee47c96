import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/**
 * The requests with a header Upgrade. They are answered as if they had none, which RFC 9110, section 7.8 allows. But
 * the parser of Node.js stops behind such a request, and node:http drops the rest of the bytes that arrived with it,
 * whatever `shouldUpgradeCallback` returns. Requests that were in these bytes would never be answered, and a request of
 * which only the beginning was there would be read from its middle. Therefore the connection ends with the answer, so
 * that the client sends those requests again (RFC 9112, section 9.3.2). Clients which send Upgrade with each request,
 * such as java.net.http, but wait for each answer, keep their connection.
 */
export class UpgradeRequests {
  /** How many bytes of a connection are known to belong to requests that were handled. */
  readonly #handledBytes = new WeakMap<Socket, number>()

  /**
   * Call this once for each request, when its response begins.
   * @returns true unless the request has no header Upgrade, or is known to be all that has arrived since the last one
   */
  mayHaveLostBytes(request: IncomingMessage): boolean {
    if (request.headers.upgrade === undefined) return false
    const { socket } = request
    const end = (this.#handledBytes.get(socket) ?? 0) + sizeOf(request)
    if (!request.complete || socket.bytesRead !== end) return true
    this.#handledBytes.set(socket, end)
    return false
  }
}

/** Returns the number of bytes of a request as clients usually write it; NaN when its length was not announced. */
function sizeOf({ method = '', url = '', rawHeaders, headers }: IncomingMessage): number {
  let bytes = `${method} ${url} HTTP/1.1\r\n\r\n`.length
  for (const text of rawHeaders) bytes += text.length + ': '.length
  return bytes + Number(headers['transfer-encoding'] === undefined ? headers['content-length'] ?? 0 : NaN)
}
