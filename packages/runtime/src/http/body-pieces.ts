/** Pieces of a body are joined when there are this many, unless they are long. */
const recentMax = 256
const longBytes = 256 * 1024

/**
 * Collects the pieces of a body. Each piece is an object that needs some hundred bytes, and a client can send pieces of
 * one byte, so short ones are joined while the body arrives.
 */
export class BodyPieces {
  readonly #joined: Buffer[] = []
  #recent: Buffer[] = []
  #recentBytes = 0

  /** The number of pieces that are kept. */
  get count(): number { return this.#joined.length + this.#recent.length }

  add(piece: Buffer): void {
    this.#recent.push(piece)
    this.#recentBytes += piece.length
    if (this.#recent.length < recentMax) return
    if (this.#recentBytes >= longBytes) this.#joined.push(...this.#recent)
    else this.#joined.push(Buffer.concat(this.#recent, this.#recentBytes))
    this.#recent = []
    this.#recentBytes = 0
  }

  /** Returns the body. */
  bytes(): Buffer {
    const pieces = [...this.#joined, ...this.#recent]
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  clear(): void {
    this.#joined.length = 0
    this.#recent = []
    this.#recentBytes = 0
  }
}
