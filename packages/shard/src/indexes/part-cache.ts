/** Parts of one index in memory: the entries of pages of summaries, and at level 0 the rows of runs. */
export interface PartCache {
  get(level: number, place: string): unknown
  /** Returns the part below an entry of a page that has come from this cache. */
  below(level: number, entry: LinkedEntry): unknown
  /** @param bytes the approximate size of the part in memory */
  set(level: number, place: string, part: unknown, bytes: number): void
}

/** An entry of a page. It links to the part below it, because to find it by its place touches much more memory. */
export interface LinkedEntry {
  readonly place: string
  /** What was found below it last. */
  link: CachedPart | undefined
}

export interface CachedPart {
  readonly owner: Map<string, CachedPart>
  readonly key: string
  /** Undefined when it was dropped. */
  part: unknown
  readonly bytes: number
  /** Whether it was read since it was added or was last the oldest. */
  isUsed: boolean
  older: CachedPart | undefined
  newer: CachedPart | undefined
}

/** The parts of one owner, by key. */
export interface CachedParts {
  get(key: string): unknown
  /** Returns where a part is, without using it. */
  find(key: string): CachedPart | undefined
  set(key: string, part: unknown, bytes: number): void
  /** Returns whether a part of that many bytes can be added without dropping others. */
  hasRoom(bytes: number): boolean
  delete(key: string): void
}

/** The most parts that are kept for another round when room is made for one, which bounds the time that it takes. */
const keptMax = 64

/**
 * Keeps the parts of all owners that were used last, approximately: the oldest part is dropped, but one that was read
 * since it was added counts as added now. So a read only marks its part, and touches no other memory. Each owner finds
 * its own parts only.
 */
export class NodePartCache {
  readonly #bytesMax: number
  /** The sum over all parts. At most `#bytesMax`. */
  #bytes = 0
  /** The ends of the list of all parts, in the order in which they were added. */
  #oldest: CachedPart | undefined
  #newest: CachedPart | undefined

  /** @param bytesMax bytes of memory of all parts */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns an owner without parts. The parts of an owner that is not used any more become old, and are dropped. */
  owner(): CachedParts {
    const parts = new Map<string, CachedPart>()
    return {
      get: key => used(parts.get(key)),
      find: key => parts.get(key),
      set: (key, part, bytes) => {
        this.#drop(parts.get(key))
        if (bytes > this.#bytesMax) return
        this.#makeRoom(bytes)
        const added: CachedPart = { owner: parts, key, part, bytes, isUsed: false, older: undefined, newer: undefined }
        parts.set(key, added)
        this.#append(added)
        this.#bytes += bytes
      },
      hasRoom: bytes => this.#bytes + bytes <= this.#bytesMax,
      delete: key => this.#drop(parts.get(key)),
    }
  }

  /** @param bytes at most `#bytesMax` */
  #makeRoom(bytes: number): void {
    for (let kept = 0; this.#bytes + bytes > this.#bytesMax;) {
      const oldest = this.#oldest!
      if (!oldest.isUsed || kept++ >= keptMax) this.#drop(oldest)
      else {
        oldest.isUsed = false
        this.#unlink(oldest)
        this.#append(oldest)
      }
    }
  }

  #drop(part: CachedPart | undefined): void {
    if (part === undefined) return
    this.#unlink(part)
    part.owner.delete(part.key)
    this.#bytes -= part.bytes
    // Links to the part must keep no memory of it, nor of its neighbours.
    part.part = part.older = part.newer = undefined
  }

  #append(part: CachedPart): void {
    part.older = this.#newest
    part.newer = undefined
    if (this.#newest === undefined) this.#oldest = part
    else this.#newest.newer = part
    this.#newest = part
  }

  #unlink({ older, newer }: CachedPart): void {
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
  }
}

/** Where a part of an index begins: a run at level 0, and a page of summaries above it. */
export interface PartPlace { readonly level: number; readonly place: string }

/**
 * The cached parts of the newest state of one index. A reader of another state neither finds nor adds parts, so that a
 * part is always that of the newest state.
 */
export class IndexPartCache {
  readonly #node: NodePartCache
  /** The parts by level. A reset replaces the list. */
  #levels: CachedParts[] = []
  #version: string
  /** The reader of the newest state; undefined when none was asked for since the state was written. */
  #newest: PartCache | undefined

  constructor(node: NodePartCache, version: string) {
    this.#node = node
    this.#version = version
  }

  /** Returns the cache for a reader of the state with that version. Call it when the reader's snapshot is taken. */
  ofVersion(version: string): PartCache {
    return version === this.#version ? this.#newest ??= this.#reader(version) : this.#reader(version)
  }

  #reader(version: string): PartCache {
    const levels = this.#levels
    const isNewest = (): boolean => version === this.#version && levels === this.#levels
    return {
      get: (level, place) => isNewest() ? levels[level]?.get(place) : undefined,
      below: (level, entry) => {
        if (!isNewest()) return undefined
        if (entry.link?.part === undefined) entry.link = levels[level]?.find(entry.place)
        return used(entry.link)
      },
      set: (level, place, part, bytes) => {
        if (!isNewest()) return
        this.#ownerOf(level).set(place, part, bytes)
      },
    }
  }

  /**
   * Adds a part of the newest state if there is room for it, so that nothing that was used is dropped for it.
   *
   * @param bytes about as many as the part will have
   * @param make returns the part, and its size in memory
   */
  offer<Part>(level: number, place: string, bytes: number, make: () => readonly [part: Part, bytes: number]): void {
    const parts = this.#ownerOf(level)
    if (parts.hasRoom(bytes)) parts.set(place, ...make())
  }

  #ownerOf(level: number): CachedParts {
    const levels = this.#levels
    while (levels.length <= level) levels.push(this.#node.owner())
    return levels[level]!
  }

  /** Call this when a state has been written, with the places of the parts that differ from the state before. */
  changed(version: string, parts: Iterable<PartPlace>): void {
    for (const { level, place } of parts) this.#levels[level]?.delete(place)
    this.#version = version
    this.#newest = undefined
  }

  /**
   * Forgets all parts, because it is not known which of them have changed. Readers whose snapshots were taken before
   * find and add none any more, even if their version is the same.
   */
  reset(version: string): void {
    this.#levels = []
    this.#version = version
    this.#newest = undefined
  }
}

/** Returns what is cached, and marks it as used. */
function used(cached: CachedPart | undefined): unknown {
  if (cached === undefined) return undefined
  if (!cached.isUsed) cached.isUsed = true
  return cached.part
}

/** Returns a cache that finds what is in another one, and adds nothing to it. */
export function withoutAdding(cache: PartCache): PartCache {
  return {
    get: (level, place) => cache.get(level, place), below: (level, entry) => cache.below(level, entry), set: () => {},
  }
}

/** A cache without content, for reads that are made once. */
export const noCache: PartCache = { get: () => undefined, below: () => undefined, set: () => {} }
