/**
 * What can be asked about the process and its machine, and slow cryptography (which in production runs on the thread
 * pool).
 */
export interface Machine {
  /** Seconds since this node's process started. */
  uptime(): number
  memory(): {
    readonly residentBytes: number
    readonly heapUsedBytes: number
    readonly heapTotalBytes: number
    readonly externalBytes: number
  }
  /** Open file descriptors, or null where the system does not tell. */
  openFiles(): number | null
  /** File descriptors that this process may have open, or null where the system does not tell. */
  openFilesMax(): number | null
  /** Seconds of event-loop delay since the last call: mean and 99th percentile. */
  eventLoopDelay(): { readonly mean: number; readonly p99: number }
  versions(): Readonly<Record<string, string>>
  /**
   * Whether a text fits a pattern that may backtrack for ever; null: it takes longer than `msMax` milliseconds. Costs
   * up to a millisecond itself.
   */
  testInTime(pattern: RegExp, text: string, msMax: number): boolean | null
  /** RFC 8018 PBKDF2. */
  pbkdf2(
    password: string, salt: string, iterations: number, keyBytes: number, digest: PasswordDigest,
  ): Promise<Uint8Array>
}

export type PasswordDigest = 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'
