/** A source of randomness: cryptographic in production, computed from the seed in the simulator. */
export interface Random {
  /** Returns `length` random bytes. */
  bytes(length: number): Uint8Array
  /** Returns a number in [0, 1). */
  fraction(): number
}
