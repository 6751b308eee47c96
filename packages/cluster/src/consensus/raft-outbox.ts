/** The work of the consensus core that waits for its driver, and how far the disk and the state machine have come. */
import type { RaftMessage } from '@sectional/core'
import type { RaftLog } from './raft-log.ts'
import type { HardState, Persist, RaftSnapshot, RaftWork } from './raft-work.ts'

export class RaftOutbox {
  readonly #log: RaftLog
  #messages: RaftMessage[] = []
  #promises: RaftMessage[] = []
  #reads: { readonly id: number; readonly index: number | null }[] = []
  #restore: RaftSnapshot | null = null
  #hardStateChanged = false
  #savedCommit: number
  /** First entry that no work has carried yet. */
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

  /** Entries up to here are on disk. */
  get stableIndex(): number { return this.#stable }
  /** Entries up to here were given out to be applied. */
  get handedOut(): number { return this.#applied }

  /** May go before the disk has what was changed. */
  send(message: RaftMessage): void { this.#messages.push(message) }

  /** Promises something that must be on disk first. */
  promise(message: RaftMessage): void { this.#promises.push(message) }

  answerRead(id: number, index: number | null): void { this.#reads.push({ id, index }) }

  changeHardState(): void { this.#hardStateChanged = true }

  /** The commit index is worth a write of its own when nothing else carried it. */
  saveCommit(commit: number): void {
    if (commit > this.#savedCommit) this.#hardStateChanged = true
  }

  truncated(index: number): void {
    this.#unstableFrom = Math.min(this.#unstableFrom, index)
    this.#stable = Math.min(this.#stable, index - 1)
  }

  /** The log begins anew behind a snapshot, which the next work carries. */
  replaced(snapshot: RaftSnapshot): void {
    this.#restore = snapshot
    this.#applied = snapshot.index
    this.#unstableFrom = snapshot.index + 1
    this.#stable = snapshot.index
  }

  hasWork(commit: number): boolean {
    return this.#messages.length > 0 || this.#promises.length > 0 || this.#reads.length > 0 || this.#hardStateChanged
      || this.#restore !== null || this.#unstableFrom <= this.#log.lastIndex || this.#applied < Math.min(commit, this.#stable)
  }

  take(hardState: HardState): RaftWork {
    const entries = this.#log.slice(this.#unstableFrom, this.#log.lastIndex)
    const mustPersist = this.#hardStateChanged || entries.length > 0 || this.#restore !== null
    const persist: Persist = {
      hardState, snapshot: this.#restore, entries, lastIndex: this.#log.lastIndex, lastTerm: this.#log.lastTerm,
    }
    // Only what this node's own disk holds is applied.
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

  /** What was replaced since does not count: then the next write does. */
  persisted({ lastIndex, lastTerm }: Persist): void {
    if (this.#log.term(lastIndex) === lastTerm) this.#stable = Math.max(this.#stable, lastIndex)
  }
}
