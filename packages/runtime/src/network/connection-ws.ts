import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { RawData } from 'ws'
import type { Connection } from './network.ts'

/** The maximum number of bytes of the reason in a WebSocket close frame (RFC 6455 section 5.5). */
const closeReasonBytesMax = 123
const normalClosure = 1000
const unsupportedData = 1003

/**
 * A WebSocket as a `Connection`. Frames for which the receiver is not ready are held, and the socket is not read
 * meanwhile.
 */
export class WebSocketConnection implements Connection {
  readonly remoteAddress: string
  readonly certifiedNames: readonly string[] | null
  readonly #socket: WebSocket
  readonly #wire: Socket
  readonly #maxFrameBytes: number
  readonly #onEnd: (connection: WebSocketConnection) => void
  /** Frames that were already read when reading was paused. Bounded by one read of the socket. */
  readonly #held: Uint8Array[] = []
  #paused = false
  #closing = false
  #silent = false
  #endReason: string | undefined
  #failure: string | undefined
  #onFrame: ((frame: Uint8Array) => void) | undefined
  #onClose: ((reason: string) => void) | undefined
  /** Counts the bytes that arrive while they are limited. */
  #count: ((bytes: Uint8Array) => void) | undefined

  /**
   * @param socket an open socket
   * @param wire the connection of TCP or TLS below it
   */
  constructor(
    socket: WebSocket, wire: Socket, peer: Pick<Connection, 'remoteAddress' | 'certifiedNames'>, maxFrameBytes: number,
    onEnd: (connection: WebSocketConnection) => void,
  ) {
    this.#socket = socket
    this.#wire = wire
    this.remoteAddress = peer.remoteAddress
    this.certifiedNames = peer.certifiedNames
    this.#maxFrameBytes = maxFrameBytes
    this.#onEnd = onEnd
    socket.pause()
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    socket.on('error', error => { this.#failure ??= error.message })
    socket.on('close', (code, reason) => this.#end(this.#failure ?? (reason.toString() || `closed with code ${code}`)))
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount
  }

  get onFrame(): ((frame: Uint8Array) => void) | undefined {
    return this.#onFrame
  }

  set onFrame(callback: ((frame: Uint8Array) => void) | undefined) {
    this.#onFrame = callback
    this.#readOn()
  }

  get onClose(): ((reason: string) => void) | undefined {
    return this.#onClose
  }

  set onClose(callback: ((reason: string) => void) | undefined) {
    this.#onClose = callback
    if (this.#endReason !== undefined) queueMicrotask(() => this.#announceEnd())
  }

  send(frame: Uint8Array): void {
    if (this.#closing || this.#socket.readyState !== WebSocket.OPEN) return
    if (frame.length > this.#maxFrameBytes) {
      return this.breakLink(`a frame of ${frame.length} bytes is larger than the limit of ${this.#maxFrameBytes}`)
    }
    // Copy the frame: the socket keeps bytes that it cannot write at once, and the caller may reuse its buffer.
    this.#socket.send(Buffer.from(frame), { binary: true })
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    this.#readOn()
  }

  limitReceived(bytesMax: number | null): void {
    if (this.#count !== undefined) this.#wire.off('data', this.#count)
    this.#count = undefined
    if (bytesMax === null) return
    let left = bytesMax
    this.#count = bytes => {
      left -= bytes.length
      if (left < 0) this.breakLink(`more than ${bytesMax} bytes arrived`)
    }
    this.#wire.on('data', this.#count)
  }

  close(reason: string): void {
    if (this.#closing) return
    this.#closing = true
    this.#failure ??= reason
    this.#held.length = 0
    this.#socket.close(normalClosure, cut(reason))
    this.#socket.resume()
  }

  /** Ends the connection without the closing handshake. */
  breakLink(reason: string): void {
    this.#closing = true
    this.#failure ??= reason
    this.#socket.terminate()
  }

  /** Like `breakLink`, but this end receives no more callbacks. */
  abandon(reason: string): void {
    this.#silent = true
    this.#onFrame = undefined
    this.breakLink(reason)
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#closing) return
    if (!isBinary || !Buffer.isBuffer(data)) {
      this.#closing = true
      this.#failure ??= 'the peer sent a text frame'
      return this.#socket.close(unsupportedData, 'binary frames only')
    }
    if (this.#paused || this.#onFrame === undefined || this.#held.length > 0) this.#held.push(data)
    else this.#onFrame(data)
  }

  #readOn(): void {
    while (this.#held.length > 0 && !this.#paused && !this.#closing && this.#onFrame !== undefined) {
      this.#onFrame(this.#held.shift() as Uint8Array)
    }
    if (!this.#paused && this.#onFrame !== undefined) this.#socket.resume()
  }

  #end(reason: string): void {
    this.#closing = true
    this.#held.length = 0
    this.#endReason = reason
    this.#onEnd(this)
    this.#announceEnd()
  }

  #announceEnd(): void {
    const reason = this.#endReason
    if (reason === undefined || this.#onClose === undefined || this.#silent) return
    this.#endReason = undefined
    this.#onClose(reason)
  }
}

function cut(reason: string): string {
  const bytes = Buffer.from(reason)
  return bytes.length <= closeReasonBytesMax
    ? reason
    : bytes.toString('utf8', 0, closeReasonBytesMax - 3).replace(/\ufffd+$/, '')
}
