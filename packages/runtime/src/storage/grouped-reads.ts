type Values = (Uint8Array | undefined)[]

interface WaitingRead {
  readonly count: number
  readonly resolve: (values: Values) => void
  readonly reject: (error: unknown) => void
}

/** A group with this many keys is read at once. */
const groupKeysMax = 256

/**
 * Combines the reads of one turn of the event loop, of all shards, into one crossing to the thread pool, because a
 * crossing costs as much as a dozen reads. When a group fails, each of its reads is tried separately, so that an
 * unreadable key fails only its own caller.
 */
export class GroupedReads {
  readonly #read: (keys: string[]) => Promise<Values>
  #keys: string[] = []
  #reads: WaitingRead[] = []

  constructor(read: (keys: string[]) => Promise<Values>) {
    this.#read = read
  }

  getMany(keys: readonly string[]): Promise<Values> {
    return new Promise((resolve, reject) => {
      if (this.#reads.length === 0) process.nextTick(() => this.#goOut())
      this.#reads.push({ count: keys.length, resolve, reject })
      for (const key of keys) this.#keys.push(key)
      if (this.#keys.length >= groupKeysMax) this.#goOut()
    })
  }

  #goOut(): void {
    const keys = this.#keys
    const reads = this.#reads
    this.#keys = []
    this.#reads = []
    if (reads.length > 0) void this.#together(keys, reads)
  }

  async #together(keys: string[], reads: readonly WaitingRead[]): Promise<void> {
    let at = 0
    try {
      const values = await this.#read(keys)
      for (const { count, resolve } of reads) resolve(values.slice(at, at += count))
    } catch (error) {
      if (reads.length === 1) reads[0]!.reject(error)
      else for (const read of reads) void this.#together(keys.slice(at, at += read.count), [read])
    }
  }
}
