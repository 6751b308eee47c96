import { ReplicaError } from '@sectional/core'
import type { AttachmentRecord } from '@sectional/core'
import type { Clock } from '@sectional/runtime'

/** Milliseconds for which a node keeps content that was written or asked for: a little less than it promises. */
const keptMs = 29 * 60_000

/** The content of attachments that a process has promised to keep until documents name it. */
export class BlobLeaseWatch {
  readonly #clock: Clock
  readonly #grants = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  granted(hash: string): void {
    this.#grants.set(hash, this.#clock.monotonic())
  }

  /** Returns what is wrong when a call with these items fails, or null. */
  contradiction(
    error: unknown, items: readonly { readonly attachments?: readonly AttachmentRecord[] }[],
  ): string | null {
    if (!(error instanceof ReplicaError) || error.code !== 'missing_blob') return null
    const named = new Set(items.flatMap(({ attachments = [] }) => attachments.map(({ blob }) => blob)))
    if ([...named].some(hash => !this.#isKept(hash))) return null
    return `all content that a call names was written less than ${keptMs / 60_000} minutes ago, but ${error.message}`
  }

  #isKept(hash: string): boolean {
    const grantedMs = this.#grants.get(hash)
    return grantedMs !== undefined && this.#clock.monotonic() - grantedMs < keptMs
  }
}
