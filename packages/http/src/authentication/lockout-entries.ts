/**
 * The counts of wrong passwords, by the address of the client and by account. When the table is full, an entry of the
 * address with the most entries makes room, so that a client with many names cannot drive out the counts of others. Of
 * this address, the entry that was not used for the longest time goes first among those that count little: as long as
 * one is left, invented names do not end the lock of another name.
 */
export interface LockoutEntry {
  failures: number
  /** Guesses that are being checked. They count, so that many guesses at the same time do not pass the threshold. */
  checking: number
  /** Monotonic milliseconds. */
  readonly until: number
}

export class LockoutEntries {
  /** The orders of the maps are those of the last use. */
  readonly #addresses = new Map<string, Map<string, LockoutEntry>>()
  readonly #entriesMax: number
  #size = 0

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get size(): number { return this.#size }

  get(address: string, account: string): LockoutEntry | undefined {
    const entries = this.#addresses.get(address)
    const entry = entries?.get(account)
    if (entries === undefined || entry === undefined) return undefined
    moveToEnd(entries, account, entry)
    moveToEnd(this.#addresses, address, entries)
    return entry
  }

  /**
   * Adds an entry that does not exist yet.
   * @param isKept whether an entry must stay as long as its address has others
   */
  add(address: string, account: string, entry: LockoutEntry, isKept: (entry: LockoutEntry) => boolean): void {
    while (this.#size >= this.#entriesMax) this.#makeRoom(isKept)
    const entries = this.#addresses.get(address) ?? new Map<string, LockoutEntry>()
    entries.set(account, entry)
    moveToEnd(this.#addresses, address, entries)
    this.#size++
  }

  delete(address: string, account: string): void {
    const entries = this.#addresses.get(address)
    if (entries?.delete(account) !== true) return
    this.#size--
    if (entries.size === 0) this.#addresses.delete(address)
  }

  #makeRoom(isKept: (entry: LockoutEntry) => boolean): void {
    let [address, entries] = this.#addresses.entries().next().value!
    for (const [other, others] of this.#addresses) if (others.size > entries.size) [address, entries] = [other, others]
    let [dropped] = entries.keys()
    for (const [account, entry] of entries) {
      if (isKept(entry)) continue
      dropped = account
      break
    }
    this.delete(address, dropped!)
  }
}

function moveToEnd<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
}
