import type { Clock, Timer } from '../clock/clock.ts'
import type { Connection } from './network.ts'

/** The part of the simulated network that a connection uses. */
export interface Wires {
  readonly clock: Clock | undefined
  readonly maxFrameBytes: number
  readonly faults: NetworkFaults
  /** Whether frames from the one node to the other are held back. */
  isCut(from: string, to: string): boolean
  /** Whether the process of that node is paused; it receives nothing until it is resumed. */
  isPaused(node: string): boolean
  /** Calls back within the microtasks of this turn, or of the turn in which the paused node is resumed. */
  whenRunning(node: string, callback: () => void): void
  /** Call this when the connection has ended and no frame of it is in transit. */
  forget(connection: MemoryConnection): void
}

/** How simulated links behave. The functions are called for each frame with the names of the two nodes. */
export interface NetworkFaults {
  /**
   * Returns the milliseconds that a frame is in transit; with 0 or when absent, it arrives within the microtasks of the
   * turn. Needs a clock. Never reorders frames of one connection.
   */
  readonly delayMs?: (from: string, to: string) => number
  /** When it returns true, the connection breaks and the frame is not delivered. */
  readonly killOnFrame?: (from: string, to: string) => boolean
  /** Returns what arrives instead of a frame, as when somebody on the path changes, repeats or omits it. */
  readonly tamper?: (from: string, to: string, frame: Uint8Array) => readonly Uint8Array[]
}

/** A frame in transit, or the end of the connection. */
type Parcel = { readonly dueMs: number } & ({ readonly frame: Uint8Array } | { readonly end: string })

/**
 * One end of a simulated connection. Frames arrive in order. A paused receiver, a cut or a delay keeps them at the
 * sender.
 */
export class MemoryConnection implements Connection {
  readonly from: string
  readonly to: string
  readonly remoteAddress: string
  readonly certifiedNames = null
  peer: MemoryConnection | undefined
  /** Called when this end of the connection has ended. */
  onEnd: (() => void) | undefined
  readonly #wires: Wires
  readonly #outbox: Parcel[] = []
  #bufferedBytes = 0
  #lastDueMs = 0
  #receivedMs: number
  #pumping = false
  #timer: Timer | undefined
  #paused = false
  /** Bytes that may still arrive. */
  #receivable = Infinity
  /** True when no more frames are sent or received. */
  #ended = false
  #endReason: string | undefined
  #onFrame: ((frame: Uint8Array) => void) | undefined
  #onClose: ((reason: string) => void) | undefined

  constructor(wires: Wires, from: string, to: string, remoteAddress: string) {
    this.#wires = wires
    this.from = from
    this.to = to
    this.remoteAddress = remoteAddress
    this.#receivedMs = this.#now()
  }

  /** When this end opened or last received a frame, by the clock of the wires. */
  get receivedMs(): number {
    return this.#receivedMs
  }

  get isOpen(): boolean {
    return !this.#ended
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  get onFrame(): ((frame: Uint8Array) => void) | undefined {
    return this.#onFrame
  }

  set onFrame(callback: ((frame: Uint8Array) => void) | undefined) {
    this.#onFrame = callback
    this.peer?.flush()
  }

  get onClose(): ((reason: string) => void) | undefined {
    return this.#onClose
  }

  set onClose(callback: ((reason: string) => void) | undefined) {
    this.#onClose = callback
    if (this.#endReason !== undefined) this.#announceEnd()
  }

  send(frame: Uint8Array): void {
    if (this.#ended) return
    if (frame.length > this.#wires.maxFrameBytes) {
      return this.breakLink(`a frame of ${frame.length} bytes is larger than the limit of ${this.#wires.maxFrameBytes}`)
    }
    if (this.#wires.faults.killOnFrame?.(this.from, this.to) === true) {
      return this.breakLink('connection reset (simulated)')
    }
    for (const sent of this.#wires.faults.tamper?.(this.from, this.to, frame) ?? [frame]) {
      this.#bufferedBytes += sent.length
      this.#post({ frame: Buffer.from(sent), dueMs: this.#due() })
    }
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.peer?.flush()
  }

  limitReceived(bytesMax: number | null): void {
    this.#receivable = bytesMax ?? Infinity
  }

  /** Frames that were sent earlier are delivered before the end. */
  close(reason: string): void {
    if (this.#ended) return
    this.#post({ end: reason, dueMs: this.#due() })
    this.#end(reason)
  }

  /** Breaks both ends at once; frames in transit are lost. */
  breakLink(reason: string): void {
    this.#drop()
    this.#end(reason)
    this.peer?.drop()
    this.peer?.receiveEnd(reason)
  }

  /** Breaks only this end. The other end does not notice at first; what it sends is lost. */
  vanish(reason: string): void {
    this.#drop()
    this.#end(reason)
  }

  /** Like `vanish`, when this end's process is gone too. */
  loseOwner(): void {
    this.#onFrame = undefined
    this.#onClose = () => {}
    this.vanish('the machine of the process is off')
  }

  /**
   * Ends the connection because this end's process is gone. This end receives nothing more; the other end sees a close.
   */
  abandon(reason: string): void {
    this.#onFrame = undefined
    this.#onClose = () => {}
    this.close(reason)
  }

  /** Delivers the frames that may be delivered now. */
  flush(): void {
    if (this.#pumping || this.#outbox.length === 0) return
    this.#pumping = true
    const waitMs = (this.#outbox[0] as Parcel).dueMs - this.#now()
    const pump = (): void => { this.#timer = undefined; this.#pumping = false; this.#pump() }
    if (waitMs > 0 && this.#wires.clock !== undefined) this.#timer = this.#wires.clock.setTimer(waitMs, pump)
    else queueMicrotask(pump)
  }

  drop(): void {
    this.#drop()
  }

  receiveEnd(reason: string): void {
    this.#end(reason)
  }

  #canReceive(): boolean {
    return this.#ended || (!this.#paused && this.#onFrame !== undefined && !this.#wires.isPaused(this.from))
  }

  #receive(frame: Uint8Array): void {
    if (this.#ended) return
    this.#receivedMs = this.#now()
    this.#receivable -= frame.length
    if (this.#receivable < 0) return this.breakLink('more bytes arrived than are allowed')
    this.#onFrame?.(frame)
  }

  #pump(): void {
    const peer = this.peer
    if (peer === undefined) return
    while (this.#outbox.length > 0 && !this.#pumping) {
      const parcel = this.#outbox[0] as Parcel
      if (this.#wires.isCut(this.from, this.to)) return
      if (parcel.dueMs > this.#now()) return this.flush()
      if ('end' in parcel) {
        this.#drop()
        return peer.receiveEnd(parcel.end)
      }
      if (!peer.#canReceive()) return
      this.#outbox.shift()
      this.#bufferedBytes -= parcel.frame.length
      peer.#receive(parcel.frame)
    }
  }

  #post(parcel: Parcel): void {
    this.#outbox.push(parcel)
    this.flush()
  }

  #due(): number {
    const delayMs = this.#wires.faults.delayMs?.(this.from, this.to) ?? 0
    this.#lastDueMs = Math.max(this.#lastDueMs, this.#now() + delayMs)
    return this.#lastDueMs
  }

  #now(): number {
    return this.#wires.clock?.monotonic() ?? 0
  }

  #drop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#pumping = false
    this.#outbox.length = 0
    this.#bufferedBytes = 0
    if (this.#ended) this.#wires.forget(this)
  }

  #end(reason: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#endReason = reason
    if (this.#outbox.length === 0) this.#wires.forget(this)
    this.onEnd?.()
    if (this.#onClose !== undefined) this.#announceEnd()
  }

  #announceEnd(): void {
    const callback = this.#onClose
    const reason = this.#endReason
    if (callback === undefined || reason === undefined) return
    this.#endReason = undefined
    this.#wires.whenRunning(this.from, () => callback(reason))
  }
}
