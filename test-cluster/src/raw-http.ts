/** HTTP as bytes on a socket, for requests that no client library sends. */
import { connect } from 'node:net'

/** Milliseconds that a server may take until it closes a connection. */
const closeMsMax = 10_000

export interface RawAnswer {
  readonly status: number
  /** Names in lower case; values of repeated headers are joined. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Sends bytes, and returns everything that the server sends until it closes the connection.
 * @throws Error when the server does not close the connection in time
 */
export function exchangeBytes(port: number, bytes: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.setTimeout(closeMsMax, () => {
    socket.destroy()
    reject(new Error('the server keeps the connection open'))
  })
  socket.on('data', chunk => { chunks.push(chunk) })
  socket.on('error', () => {})
  socket.on('close', () => { resolve(Buffer.concat(chunks).toString('latin1')) })
  socket.write(Buffer.from(bytes, 'latin1'))
  return promise
}

/** Returns the statuses of the responses on a connection, in their order. */
export function statusesOf(received: string): readonly number[] {
  return [...received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status))
}

/** Returns the head of the first response. */
export function headOf(received: string): RawAnswer {
  const [first, ...lines] = received.split('\r\n\r\n', 1)[0]!.split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    headers[name] = [headers[name], line.slice(colon + 1).trim()].filter(Boolean).join(', ')
  }
  return { status: Number(first?.split(' ')[1]), headers }
}
