/**
 * Collects the work of the consensus core until the driver takes it, and records how far the disk and the state machine
 * have come.
 */
import type { RaftMessage } from '@sectional/core'
import type { RaftLog } from './raft-log.ts'
import type { HardState, Persist, RaftSnapshot, RaftWork } from './raft-work.ts'

/**
 * Limit of the messages of each kind, and of the answered reads, that wait for the driver. The driver takes none while
 * its disk refuses writes. The oldest item is dropped then: messages may be lost, and a read ends after its own time
 * limit.
 */
const waitingMax = 1024

export class RaftOutbox {
  readonly #log: RaftLog
  #messages: RaftMessage[] = []
  #promises: RaftMessage[] = []
  #reads: { readonly id: number; readonly index: number | null }[] = []
  #restore: RaftSnapshot | null = null
  #hardStateChanged = false
  #savedCommit: number
  /** Index of the first entry that no taken work contains. */
  #unstableFrom: number
  #stable: number
  #applied: number

  constructor(log: RaftLog, snapshot: RaftSnapshot, commit: number) {
    this.#log = log
    this.#savedCommit = commit
    this.#unstableFrom = log.lastIndex + 1
    this.#stable = log.lastIndex
    this.#applied = snapshot.index
  }

  /** Entries up to this index are on disk. */
  get stableIndex(): number { return this.#stable }
  /** Entries up to this index were handed to the driver to be applied. */
  get handedOut(): number { return this.#applied }

  /** Queues a message that may be sent before the current changes are on disk. */
  send(message: RaftMessage): void { enqueue(this.#messages, message) }

  /** Queues a message that promises something. It is sent after the current changes are on disk. */
  promise(message: RaftMessage): void { enqueue(this.#promises, message) }

  answerRead(id: number, index: number | null): void { enqueue(this.#reads, { id, index }) }

  changeHardState(): void { this.#hardStateChanged = true }

  /** Requests a write for the commit index alone, when no other write carried it. */
  saveCommit(commit: number): void {
    if (commit > this.#savedCommit) this.#hardStateChanged = true
  }

  truncated(index: number): void {
    this.#unstableFrom = Math.min(this.#unstableFrom, index)
    this.#stable = Math.min(this.#stable, index - 1)
  }

  /** The log begins anew behind a snapshot, which the next work contains. */
  replaced(snapshot: RaftSnapshot): void {
    this.#restore = snapshot
    this.#applied = snapshot.index
    this.#unstableFrom = snapshot.index + 1
    this.#stable = snapshot.index
  }

  hasWork(commit: number): boolean {
    return this.#messages.length > 0 || this.#promises.length > 0 || this.#reads.length > 0
      || this.#hardStateChanged || this.#restore !== null || this.#unstableFrom <= this.#log.lastIndex
      || this.#applied < Math.min(commit, this.#stable)
  }

  take(hardState: HardState): RaftWork {
    const entries = this.#log.slice(this.#unstableFrom, this.#log.lastIndex)
    const mustPersist = this.#hardStateChanged || entries.length > 0 || this.#restore !== null
    const persist: Persist = {
      hardState, snapshot: this.#restore, entries, lastIndex: this.#log.lastIndex, lastTerm: this.#log.lastTerm,
    }
    // A node applies only entries that are on its own disk.
    const applyTo = Math.min(hardState.commit, this.#stable)
    const work: RaftWork = {
      messages: this.#messages, persist: mustPersist ? persist : null, messagesAfterPersist: this.#promises,
      restore: this.#restore, committed: this.#log.slice(this.#applied + 1, applyTo), reads: this.#reads,
    }
    if (mustPersist) this.#savedCommit = hardState.commit
    this.#applied = Math.max(this.#applied, applyTo)
    this.#unstableFrom = this.#log.lastIndex + 1
    this.#messages = []
    this.#promises = []
    this.#reads = []
    this.#restore = null
    this.#hardStateChanged = false
    return work
  }

  /**
   * Records a finished write. Entries that were replaced during the write do not count; the write of their replacements
   * follows.
   */
  persisted({ lastIndex, lastTerm }: Persist): void {
    if (this.#log.term(lastIndex) === lastTerm) this.#stable = Math.max(this.#stable, lastIndex)
  }
}

function enqueue<Item>(items: Item[], item: Item): void {
  if (items.length >= waitingMax) items.shift()
  items.push(item)
}
