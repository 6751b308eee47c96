type Values = (Uint8Array | undefined)[]

interface WaitingRead {
  readonly keys: readonly Uint8Array[]
  readonly resolve: (values: Values) => void
  readonly reject: (error: unknown) => void
}

/** A group of this many keys goes out at once. */
const groupKeysMax = 256

/**
 * What is read in one turn of the event loop, of many shards, crosses to the thread pool and back together: a crossing takes as long as a
 * dozen reads. Where the group fails, each read of it is tried by itself, so that what cannot be read fails its own reader only.
 */
export class GroupedReads {
  readonly #read: (keys: Uint8Array[]) => Promise<Values>
  #waiting: WaitingRead[] = []
  #keys = 0

  constructor(read: (keys: Uint8Array[]) => Promise<Values>) {
    this.#read = read
  }

  getMany(keys: readonly Uint8Array[]): Promise<Values> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) process.nextTick(() => this.#goOut())
      this.#waiting.push({ keys, resolve, reject })
      this.#keys += keys.length
      if (this.#keys >= groupKeysMax) this.#goOut()
    })
  }

  #goOut(): void {
    const reads = this.#waiting
    this.#waiting = []
    this.#keys = 0
    if (reads.length > 0) void this.#together(reads)
  }

  async #together(reads: readonly WaitingRead[]): Promise<void> {
    try {
      const values = await this.#read(reads.flatMap(({ keys }) => keys))
      let at = 0
      for (const { keys, resolve } of reads) resolve(values.slice(at, at += keys.length))
    } catch (error) {
      if (reads.length === 1) reads[0]!.reject(error)
      else for (const read of reads) void this.#together([read])
    }
  }
}
