import type { Clock, Timer } from '../clock/clock.ts'
import type { Connection } from './network.ts'

/** What a connection asks of the wires between the nodes. */
export interface Wires {
  readonly clock: Clock | undefined
  readonly maxFrameBytes: number
  readonly faults: NetworkFaults
  /** Frames from the one node to the other wait. */
  isCut(from: string, to: string): boolean
  /** The process of that node is stopped: it hears nothing until it goes on. */
  isPaused(node: string): boolean
  /** Calls back within the microtasks of this turn, or of the one in which the paused node goes on. */
  whenRunning(node: string, callback: () => void): void
  /** The connection has ended and nothing of it is on its way. */
  forget(connection: MemoryConnection): void
}

/** How simulated links behave. Asked per frame, with the names of the nodes. */
export interface NetworkFaults {
  /**
   * Milliseconds a frame travels; 0 or absent: within the microtasks of the turn. Needs a clock. Never reorders one
   * connection's frames.
   */
  readonly delayMs?: (from: string, to: string) => number
  /** Kills the connection in place of delivering the frame. */
  readonly killOnFrame?: (from: string, to: string) => boolean
}

/** What is on its way: a frame, or the end of the connection. */
type Parcel = { readonly dueMs: number } & ({ readonly frame: Uint8Array } | { readonly end: string })

/**
 * One end of a simulated connection. Frames arrive in order; the receiver's pause, a cut or a delay holds them at the
 * sender.
 */
export class MemoryConnection implements Connection {
  readonly from: string
  readonly to: string
  readonly remoteAddress: string
  peer: MemoryConnection | undefined
  /** Tells the network that holds this end that it has ended. */
  onEnd: (() => void) | undefined
  readonly #wires: Wires
  readonly #outbox: Parcel[] = []
  #bufferedBytes = 0
  #lastDueMs = 0
  #pumping = false
  #timer: Timer | undefined
  #paused = false
  /** No frame goes out or comes in any more. */
  #ended = false
  #endReason: string | undefined
  #onFrame: ((frame: Uint8Array) => void) | undefined
  #onClose: ((reason: string) => void) | undefined

  constructor(wires: Wires, from: string, to: string, remoteAddress: string) {
    this.#wires = wires
    this.from = from
    this.to = to
    this.remoteAddress = remoteAddress
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
    this.#bufferedBytes += frame.length
    this.#post({ frame: new Uint8Array(frame), dueMs: this.#due() })
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.peer?.flush()
  }

  /** What was sent before arrives before the end does. */
  close(reason: string): void {
    if (this.#ended) return
    this.#post({ end: reason, dueMs: this.#due() })
    this.#end(reason)
  }

  /** Both ends die at once; what was on its way is lost. */
  breakLink(reason: string): void {
    this.#drop()
    this.#end(reason)
    this.peer?.drop()
    this.peer?.receiveEnd(reason)
  }

  /** This end dies, and nobody tells the other one: what that one sends is lost until it notices. */
  vanish(reason: string): void {
    this.#drop()
    this.#end(reason)
  }

  /** This end's process is gone: it hears nothing more, the other end learns of it as of a close. */
  abandon(reason: string): void {
    this.#onFrame = undefined
    this.#onClose = () => {}
    this.close(reason)
  }

  /** Delivers what may be delivered now. */
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
    if (!this.#ended) this.#onFrame?.(frame)
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
