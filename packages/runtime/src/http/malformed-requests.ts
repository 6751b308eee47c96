import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The statuses for errors of the parser, as node:http has them. */
const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}
const otherStatus = 400
/** Errors of sockets and of TLS handshakes have other codes. */
const parserError = /^HPE_/

/**
 * Ends a connection on which something arrived that is no request. Clients take what is sent for the answer to their
 * oldest request. So nothing is sent while a complete request is unanswered, which may take effect, and the client
 * must not take it for refused. node:http would send the error then, too.
 *
 * @param latest the response to the latest request of the connection; undefined when all are answered
 */
export function refuseMalformed(
  error: NodeJS.ErrnoException, socket: Duplex, latest: ServerResponse | undefined,
): void {
  const status = statuses[error.code ?? ''] ?? (parserError.test(error.code ?? '') ? otherStatus : undefined)
  if (status !== undefined && socket.writable && mayAnswer(latest)) {
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`)
  }
  socket.destroy(error)
}

/** Whether there is no unanswered request but one whose body is malformed. */
function mayAnswer(latest: ServerResponse | undefined): boolean {
  if (latest === undefined || latest.writableFinished) return true
  // A response without a socket waits for earlier ones.
  return !latest.req.complete && latest.socket !== null && !latest.headersSent
}
