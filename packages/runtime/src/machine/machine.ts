/**
 * Information about the process and its machine, and slow cryptographic functions. In production the latter run on the
 * thread pool.
 */
export interface Machine {
  /** Seconds since the process of this node started. */
  uptime(): number
  /** The number of threads that can work at the same time, at least 1. */
  cores(): number
  memory(): {
    readonly residentBytes: number
    readonly heapUsedBytes: number
    readonly heapTotalBytes: number
    readonly externalBytes: number
  }
  /** The number of open file descriptors; null when the system does not report it. */
  openFiles(): number | null
  /** The maximum number of file descriptors that this process may open; null when the system does not report it. */
  openFilesMax(): number | null
  /** Returns the event-loop delay in seconds since the last call: mean and 99th percentile. */
  eventLoopDelay(): { readonly mean: number; readonly p99: number }
  versions(): Readonly<Record<string, string>>
  /**
   * Tests whether a text matches a pattern that may backtrack excessively. Returns null when this takes longer than
   * `msMax` milliseconds. The call itself costs up to a millisecond.
   */
  testInTime(pattern: RegExp, text: string, msMax: number): boolean | null
  /** PBKDF2 as in RFC 8018. */
  pbkdf2(
    password: string, salt: string, iterations: number, keyBytes: number, digest: PasswordDigest,
  ): Promise<Uint8Array>
}

export type PasswordDigest = 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'
