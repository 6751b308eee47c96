import { pbkdf2Sync } from 'node:crypto'
import type { Clock } from '../clock/clock.ts'
import type { Machine, PasswordDigest } from './machine.ts'

/** A machine whose measurements are constant, except for its uptime. */
export class MemoryMachine implements Machine {
  readonly #clock: Clock
  readonly #startedAt: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAt = clock.monotonic()
  }

  uptime(): number {
    return (this.#clock.monotonic() - this.#startedAt) / 1000
  }

  cores(): number {
    return 2
  }

  memory(): ReturnType<Machine['memory']> {
    return { residentBytes: 0, heapUsedBytes: 0, heapTotalBytes: 0, externalBytes: 0 }
  }

  openFiles(): null {
    return null
  }

  openFilesMax(): null {
    return null
  }

  eventLoopDelay(): { readonly mean: number; readonly p99: number } {
    return { mean: 0, p99: 0 }
  }

  versions(): Readonly<Record<string, string>> {
    return { node: 'simulated' }
  }

  testInTime(pattern: RegExp, text: string): boolean {
    return pattern.test(text)
  }

  async pbkdf2(
    password: string, salt: string, iterations: number, keyBytes: number, digest: PasswordDigest,
  ): Promise<Uint8Array> {
    return pbkdf2Sync(password, salt, iterations, keyBytes, digest)
  }
}
