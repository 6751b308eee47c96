/** Randomness: cryptographic in production, from the seed in the simulator. */
export interface Random {
  /** `length` random bytes. */
  bytes(length: number): Uint8Array
  /** A fraction in [0, 1). */
  fraction(): number
}
