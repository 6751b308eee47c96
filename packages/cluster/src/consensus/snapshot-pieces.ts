/**
 * Transfers a snapshot from a leader to a follower in pieces. The leader sends the next piece when the follower holds
 * the one before.
 */
import { crc32 } from 'node:zlib'
import type { RaftMessage } from '@sectional/core'
import type { RaftSnapshot } from './raft-work.ts'

type Piece = RaftMessage & { readonly type: 'snapshot' }

export function snapshotChecksum(state: Uint8Array): number { return crc32(state) }

/** The leader's side. It completes the transfer of one snapshot even if the leader has taken a newer one meanwhile. */
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

  /**
   * Handles the follower's answer. Returns false when it reports no progress: the piece that the follower waits for is
   * already on its way.
   */
  answered(index: number, received: number): boolean {
    if (index !== this.snapshot.index || received === this.#held || received > this.snapshot.state.length) return false
    this.#held = received
    return true
  }

  /** Returns the next piece that the follower lacks. */
  next(): Pick<Piece, 'index' | 'snapshotTerm' | 'configuration' | 'state' | 'offset' | 'totalBytes' | 'checksum'> {
    this.ticks = 0
    const { index, term, configuration, state, checksum } = this.snapshot
    const piece = state.subarray(this.#held, this.#held + this.#pieceBytes)
    return {
      index, snapshotTerm: term, configuration, state: piece, offset: this.#held, totalBytes: state.length, checksum,
    }
  }
}

/** The follower's side. It assembles the pieces of one snapshot at a time. */
export class SnapshotIntake {
  readonly #bytesMax: number
  #of: Pick<Piece, 'from' | 'term' | 'index' | 'snapshotTerm' | 'totalBytes' | 'checksum'> | null = null
  #bytes: Uint8Array = new Uint8Array(0)
  #received = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Accepts a piece. Returns the complete snapshot when all pieces are there and the checksum is right. Otherwise
   * returns how many bytes of it are held, which is 0 when it must be sent from the start.
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

  /** Discards a snapshot of an index up to `index`: it is not needed, because this node has committed that index. */
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
