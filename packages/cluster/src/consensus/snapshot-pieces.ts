/**
 * A snapshot on its way from a leader to a follower, in pieces: the leader sends the next one when the follower holds
 * the one before.
 */
import { crc32 } from 'node:zlib'
import type { RaftMessage } from '@sectional/core'
import type { RaftSnapshot } from './raft-work.ts'

type Piece = RaftMessage & { readonly type: 'snapshot' }

export function snapshotChecksum(state: Uint8Array): number { return crc32(state) }

/** The leader's end. It sends one snapshot to its end, also when it has taken a newer one meanwhile. */
export class SnapshotTransfer {
  readonly snapshot: RaftSnapshot
  /** Heartbeats since the last piece was sent. */
  ticks = 0
  readonly #pieceBytes: number
  #held = 0

  constructor(snapshot: RaftSnapshot, pieceBytes: number) {
    this.snapshot = snapshot
    this.#pieceBytes = pieceBytes
  }

  /** The follower's answer. False: it says nothing new, and the piece that it waits for is under way. */
  answered(index: number, received: number): boolean {
    if (index !== this.snapshot.index || received === this.#held || received > this.snapshot.state.length) return false
    this.#held = received
    return true
  }

  /** The piece that the follower lacks next. */
  next(): Pick<Piece, 'index' | 'snapshotTerm' | 'configuration' | 'state' | 'offset' | 'totalBytes' | 'checksum'> {
    this.ticks = 0
    const { index, term, configuration, state, checksum } = this.snapshot
    const piece = state.subarray(this.#held, this.#held + this.#pieceBytes)
    return {
      index, snapshotTerm: term, configuration, state: piece, offset: this.#held, totalBytes: state.length, checksum,
    }
  }
}

/** The follower's end: puts the pieces of one snapshot at a time together. */
export class SnapshotIntake {
  readonly #bytesMax: number
  #of: Pick<Piece, 'from' | 'term' | 'index' | 'snapshotTerm' | 'totalBytes' | 'checksum'> | null = null
  #bytes: Uint8Array = new Uint8Array(0)
  #received = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Takes a piece in. Returns the whole snapshot once it is there and its checksum is right, else how many bytes of it
   * are held: 0 when it has to be sent anew.
   */
  take(piece: Piece): RaftSnapshot | number {
    if (!this.#belongs(piece)) {
      if (piece.offset !== 0 || piece.totalBytes > this.#bytesMax) return 0
      this.#of = piece
      this.#bytes = new Uint8Array(piece.totalBytes)
      this.#received = 0
    }
    if (piece.offset !== this.#received || piece.offset + piece.state.length > piece.totalBytes) return this.#received
    this.#bytes.set(piece.state, piece.offset)
    this.#received += piece.state.length
    if (this.#received < piece.totalBytes) return this.#received
    const bytes = this.#bytes
    this.#forget()
    if (piece.checksum !== null && snapshotChecksum(bytes) !== piece.checksum) return 0
    return {
      index: piece.index, term: piece.snapshotTerm, configuration: piece.configuration, state: bytes,
      checksum: piece.checksum,
    }
  }

  /** What is committed needs no snapshot. */
  forgetUpTo(index: number): void {
    if (this.#of !== null && this.#of.index <= index) this.#forget()
  }

  #forget(): void {
    this.#of = null
    this.#bytes = new Uint8Array(0)
    this.#received = 0
  }

  #belongs({ from, term, index, snapshotTerm, totalBytes, checksum }: Piece): boolean {
    const of = this.#of
    return of !== null && of.from === from && of.term === term && of.index === index && of.snapshotTerm === snapshotTerm
      && of.totalBytes === totalBytes && of.checksum === checksum
  }
}
