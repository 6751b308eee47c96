/** Parts of indexes in memory: the entries of pages of summaries, and the rows of runs, by key. */
export interface PartCache {
  get(key: string): unknown
  /** @param bytes the approximate size of the part in memory */
  set(key: string, part: unknown, bytes: number): void
}

/** Bytes of memory of all parts of a node. */
export const partCacheBytesMax = 64 * 1024 * 1024

interface CachedPart { readonly part: unknown; readonly bytes: number }

/** Keeps the parts of all indexes of a node that were used last. */
export class NodePartCache implements PartCache {
  readonly #bytesMax: number
  /** The part that was used longest ago comes first. */
  readonly #parts = new Map<string, CachedPart>()
  /** The sum over `#parts`. At most `#bytesMax`. */
  #bytes = 0
  #indexes = 0

  constructor(bytesMax = partCacheBytesMax) {
    this.#bytesMax = bytesMax
  }

  get(key: string): unknown {
    const found = this.#parts.get(key)
    if (found === undefined) return undefined
    this.#parts.delete(key)
    this.#parts.set(key, found)
    return found.part
  }

  set(key: string, part: unknown, bytes: number): void {
    this.delete(key)
    if (bytes > this.#bytesMax) return
    this.#parts.set(key, { part, bytes })
    this.#bytes += bytes
    for (const oldest of this.#parts.keys()) {
      if (this.#bytes <= this.#bytesMax) return
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    this.#bytes -= this.#parts.get(key)?.bytes ?? 0
    this.#parts.delete(key)
  }

  /** Returns a number that it has not returned before. It keeps the parts of two indexes apart. */
  nextIndex(): number {
    return ++this.#indexes
  }
}

/**
 * The cached parts of the newest state of one index. A reader of another state neither finds nor adds parts, so that a
 * part is always that of the newest state.
 */
export class IndexPartCache {
  readonly #node: NodePartCache
  #index: number
  #version: string

  constructor(node: NodePartCache, version: string) {
    this.#node = node
    this.#index = node.nextIndex()
    this.#version = version
  }

  /** Returns the cache for a reader of the state with that version. Call it when the reader's snapshot is taken. */
  ofVersion(version: string): PartCache {
    const index = this.#index
    const isNewest = (): boolean => version === this.#version && index === this.#index
    return {
      get: key => isNewest() ? this.#node.get(this.#key(key)) : undefined,
      set: (key, part, bytes) => {
        if (isNewest()) this.#node.set(this.#key(key), part, bytes)
      },
    }
  }

  /** Call this when a state has been written, with the keys of the parts that differ from the state before. */
  changed(version: string, keys: Iterable<string>): void {
    for (const key of keys) this.#node.delete(this.#key(key))
    this.#version = version
  }

  /**
   * Forgets all parts, because it is not known which of them have changed. Readers whose snapshots were taken before
   * find and add none any more, even if their version is the same.
   */
  reset(version: string): void {
    this.#index = this.#node.nextIndex()
    this.#version = version
  }

  #key(key: string): string {
    return `${this.#index} ${key}`
  }
}

/** A cache without content, for reads that are made once. */
export const noCache: PartCache = { get: () => undefined, set: () => {} }
