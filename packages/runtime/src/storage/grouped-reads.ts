type Values = (Uint8Array | undefined)[]

interface WaitingRead {
  readonly count: number
  readonly resolve: (values: Values) => void
  readonly reject: (error: unknown) => void
}

/** A group of this many keys goes out at once. */
const groupKeysMax = 256

/**
 * What is read in one turn of the event loop, of many shards, crosses to the thread pool and back together: a crossing
 * takes as long as a dozen reads. Where the group fails, each read of it is tried by itself, so that what cannot be
 * read fails its own reader only.
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
