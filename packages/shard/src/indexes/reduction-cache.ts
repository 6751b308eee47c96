import { type ReducedGroup, type ReduceIndexRequest, ReplicaError } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { type CachedParts, NodePartCache } from './part-cache.ts'

/** Bytes of memory of all results of a node. */
const reductionCacheBytesMax = 16 * 1024 * 1024
/** Results with more groups, or more bytes than a page may have, and requests with more ranges are not kept. */
const groupsMax = 1000
const rangesMax = 16
/** Milliseconds for which groups are read ahead. The call that waits for the first page has a time limit. */
export const readAheadMs = 1000
/** Estimated bytes of memory that a result and a group take besides their texts and values. */
const objectBytes = 200

/** A whole group in one state of an index. */
export interface KnownGroup {
  readonly group: string
  /** The place at which the next group begins. */
  readonly to: string
  /** As `Indexer.encodeGroup` returns it. */
  readonly value: Uint8Array
}

/** The groups of one level in one state of an index that were reduced before. */
export interface KnownGroups {
  /** @param from the place at which the group begins */
  get(from: string): KnownGroup | undefined
  add(from: string, group: KnownGroup): void
}

/**
 * How a reduction that is being read has ended: with these groups, `large` when they are too many to keep, `again` when
 * it is slow or was not read to its end, or with an error that each equal request would get.
 */
type Ending = readonly ReducedGroup[] | 'large' | 'again' | ReplicaError

/** Groups of one level, by the places at which they begin. */
interface LevelGroups { readonly byPlace: Map<string, KnownGroup>; bytes: number }

/**
 * Whole results of reductions of the indexes of a node; those that were used last are kept. A result belongs to one
 * version of an index, and no other set of rows of any index in the store ever has that version. So a result never has
 * to be removed when rows change.
 */
export class ReductionCache {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #results: CachedParts
  /** The reductions that are being read, by key. They do not reject. */
  readonly #running = new Map<string, Promise<Ending>>()
  /** The request for which a key was made last, and its text: all shards of a node get the same request. */
  #lastRequest: ReduceIndexRequest | undefined
  #lastText: string | undefined

  constructor(clock: Pick<Clock, 'monotonic'>, bytesMax = reductionCacheBytesMax) {
    this.#clock = clock
    this.#results = new NodePartCache(bytesMax).owner()
  }

  /** @param version of the state of the index (`StoredState.version`) */
  get(version: string, request: ReduceIndexRequest): readonly ReducedGroup[] | undefined {
    const key = this.#keyOf(version, request)
    return key === undefined ? undefined : this.#results.get(key) as readonly ReducedGroup[] | undefined
  }

  /**
   * Returns the groups of a reduction. A call for a result that another call is reading waits for it, and gets the same
   * groups, or the same error of a function. When the result is too large, each of them reads by itself; when it is not
   * there soon, one of them does.
   *
   * @param read begins the reduction; its pages have no head
   * @param pageBytes bytes of groups that are read ahead
   * @param isFailure whether a group describes a failure. A result with one is not kept
   */
  async* open(
    version: string, request: ReduceIndexRequest, read: () => AsyncIterable<readonly ReducedGroup[]>,
    pageBytes: number, isFailure: (group: ReducedGroup) => boolean = () => false,
  ): AsyncGenerator<readonly ReducedGroup[]> {
    const key = this.#keyOf(version, request)
    if (key === undefined) return yield* read()
    for (let running = this.#running.get(key); running !== undefined; running = this.#running.get(key)) {
      const ending = await running
      if (ending === 'large') return yield* read()
      if (ending instanceof ReplicaError) throw ending
      if (ending !== 'again') return yield ending
    }
    const known = this.#results.get(key) as readonly ReducedGroup[] | undefined
    if (known !== undefined) yield known
    else yield* this.#keep(key, read(), pageBytes, isFailure)
  }

  /**
   * Returns the groups of a level that requests for ranges have reduced. Requests for other ranges share all groups but
   * those in which the ranges begin and end.
   */
  groupsOf(version: string, level: number | 'exact'): KnownGroups {
    const key = `${version} groups ${level}`
    const known = this.#results.get(key) as LevelGroups | undefined ?? { byPlace: new Map(), bytes: objectBytes }
    return {
      get: from => known.byPlace.get(from),
      add: (from, group) => {
        if (known.byPlace.size >= groupsMax || known.byPlace.has(from)) return
        known.byPlace.set(from, group)
        known.bytes += from.length + group.to.length + bytesOf(group)
        this.#results.set(key, known, known.bytes)
      },
    }
  }

  /** Returns undefined for a request whose result is not kept. */
  #keyOf(version: string, request: ReduceIndexRequest): string | undefined {
    if (request !== this.#lastRequest) {
      this.#lastRequest = request
      this.#lastText = textOf(request)
    }
    return this.#lastText && `${version} ${this.#lastText}`
  }

  /**
   * Reads groups ahead before it returns the first one, so that nobody waits for a slow reader. A result that turns out
   * to be too large is returned page by page.
   */
  async* #keep(
    key: string, pages: AsyncIterable<readonly ReducedGroup[]>, pageBytes: number,
    isFailure: (group: ReducedGroup) => boolean,
  ): AsyncGenerator<readonly ReducedGroup[]> {
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.#running.set(key, promise)
    // The first call decides.
    const end = (ending: Ending): void => {
      if (this.#running.get(key) === promise) this.#running.delete(key)
      resolve(ending)
    }
    const until = this.#clock.monotonic() + readAheadMs
    let groups: ReducedGroup[] = []
    let bytes = 0
    let isKept = true
    let isAhead = true
    try {
      for await (const page of pages) {
        if (isKept) {
          groups.push(...page)
          bytes += page.reduce((sum, { group, value }) => sum + group.length + value.length, 0)
        }
        const isTooMuch = isKept && (groups.length > groupsMax || bytes > pageBytes)
        if (!isAhead) yield page
        else if (isTooMuch || this.#clock.monotonic() >= until) {
          isAhead = false
          end(isTooMuch ? 'large' : 'again')
          yield [...groups]
        }
        if (!isTooMuch) continue
        isKept = false
        groups = []
      }
      if (isKept && !groups.some(isFailure)) {
        this.#results.set(key, groups, groups.reduce((sum, group) => sum + bytesOf(group), objectBytes + key.length))
      }
      if (isKept) end(groups)
    } catch (error) {
      if (isFailureOfFunction(error)) end(error)
      throw error
    } finally {
      end('again')
    }
    if (isAhead && groups.length > 0) yield groups
  }
}

/** Returns whether each equal request would fail in the same way, after the same time. */
function isFailureOfFunction(error: unknown): error is ReplicaError {
  return error instanceof ReplicaError && (error.code === 'exhausted' || error.code === 'compilation')
}

function bytesOf({ group, value }: Pick<ReducedGroup, 'group' | 'value'>): number {
  return group.length + value.length + objectBytes
}

/** Returns what makes the result of a request on one state of an index; undefined when the result is not kept. */
function textOf(
  { ranges, descending, after, skip = 0, limit, groupLevel }: ReduceIndexRequest,
): string | undefined {
  if (ranges.length > rangesMax) return undefined
  return JSON.stringify([ranges, descending, after, skip, limit, groupLevel])
}
